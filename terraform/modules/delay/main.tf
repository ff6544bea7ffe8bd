resource "google_service_account" "release" {
  project      = var.project_id
  account_id   = "${var.name}-release"
  display_name = "Pub/Sub toolkit delay: publishes the message when it is due"
}

# The App Engine build pulls and pushes with the version's own account.
resource "google_project_iam_member" "release_build" {
  for_each = toset(["roles/logging.logWriter", "roles/artifactregistry.writer"])

  project = var.project_id
  role    = each.value
  member  = google_service_account.release.member
}

resource "google_storage_bucket_iam_member" "release_build" {
  bucket = var.source_code.bucket
  role   = "roles/storage.objectViewer"
  member = google_service_account.release.member
}

resource "google_pubsub_topic_iam_member" "release_publisher" {
  project = var.project_id
  topic   = var.final_topic_id
  role    = "roles/pubsub.publisher"
  member  = google_service_account.release.member
}

# --- App Engine -------------------------------------------------------------

resource "google_app_engine_application" "this" {
  count = var.create_app_engine ? 1 : 0

  project     = var.project_id
  location_id = var.app_engine_location
}

# One fixed version: a new archive replaces it in place, and no traffic has to be moved.
resource "google_app_engine_standard_app_version" "release" {
  project         = var.project_id
  service         = var.app_engine_service
  version_id      = "live"
  runtime         = var.runtime
  service_account = google_service_account.release.email
  instance_class  = "F1"

  entrypoint {
    shell = "node app.mjs"
  }

  deployment {
    zip {
      source_url = "https://storage.googleapis.com/${var.source_code.bucket}/${var.source_code.object}"
    }
  }

  env_variables = merge(var.environment, { FINAL_TOPIC = var.final_topic_id, TASK_QUEUES = google_cloud_tasks_queue.this.id })

  automatic_scaling {
    standard_scheduler_settings {
      min_instances = 0
      max_instances = 10
    }
  }

  delete_service_on_destroy = var.app_engine_service != "default"
  noop_on_destroy           = var.app_engine_service == "default"

  depends_on = [
    google_app_engine_application.this,
    google_project_iam_member.release_build,
    google_storage_bucket_iam_member.release_build,
  ]
}

# --- queue ------------------------------------------------------------------

resource "google_cloud_tasks_queue" "this" {
  project  = var.project_id
  location = var.region
  name     = var.name

  app_engine_routing_override {
    service = var.app_engine_service
  }

  rate_limits {
    max_dispatches_per_second = 500
    max_concurrent_dispatches = 1000
  }

  retry_config {
    max_attempts       = -1
    max_retry_duration = "0s"
    min_backoff        = "1s"
    max_backoff        = "300s"
    max_doublings      = 8
  }

  stackdriver_logging_config {
    sampling_ratio = 0.1
  }

  depends_on = [google_app_engine_application.this]
}

resource "google_cloud_tasks_queue_iam_member" "enqueuer" {
  project  = var.project_id
  location = google_cloud_tasks_queue.this.location
  name     = google_cloud_tasks_queue.this.name
  role     = "roles/cloudtasks.enqueuer"
  member   = var.enqueuer
}

# Creating a task with an App Engine target needs appengine.applications.get.
resource "google_project_iam_member" "enqueuer_app_engine" {
  project = var.project_id
  role    = "roles/appengine.appViewer"
  member  = var.enqueuer
}
