locals {
  has_app_engine = var.app_engine != null

  # A deleted name stays taken for days, so a new generation has other names.
  names  = [for index in range(var.queues.count + var.queues.draining) : "${var.name}-${var.queues.generation}-${index}"]
  all    = [for name in local.names : google_cloud_tasks_queue.this[name].id]
  active = slice(local.all, 0, var.queues.count)

  # Both make tasks, the release the further ones of a long delay; the function also takes away what was replaced.
  enqueuers = local.has_app_engine ? { delay = var.enqueuer, release = var.release.member } : { delay = var.enqueuer }
  grants = merge([
    for name in local.names : { for who, member in local.enqueuers : "${who} ${name}" => { queue = name, member = member } }
  ]...)
}

# --- queues -----------------------------------------------------------------

resource "google_cloud_tasks_queue" "this" {
  for_each = toset(local.names)

  project  = var.project_id
  location = var.region
  name     = each.key

  dynamic "app_engine_routing_override" {
    for_each = local.has_app_engine ? [var.app_engine.service] : []
    content {
      service = app_engine_routing_override.value
    }
  }

  rate_limits {
    max_dispatches_per_second = var.queues.max_dispatches_per_second
    max_concurrent_dispatches = var.queues.max_concurrent_dispatches
  }

  # A queue that gives up drops the task, and with it the message. The release gives up in its place, and keeps a dead letter.
  retry_config {
    max_attempts       = var.queues.max_attempts
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
  for_each = local.grants

  project  = var.project_id
  location = var.region
  name     = google_cloud_tasks_queue.this[each.value.queue].name
  role     = "roles/cloudtasks.enqueuer"
  member   = each.value.member
}

resource "google_cloud_tasks_queue_iam_member" "deleter" {
  for_each = toset(local.names)

  project  = var.project_id
  location = var.region
  name     = google_cloud_tasks_queue.this[each.key].name
  role     = "roles/cloudtasks.taskDeleter"
  member   = var.enqueuer
}

# --- tasks that publish by themselves ---------------------------------------

# Who makes a task that carries a token of an account must be allowed to act as it.
resource "google_service_account_iam_member" "enqueuer" {
  count = local.has_app_engine ? 0 : 1

  service_account_id = "projects/${var.project_id}/serviceAccounts/${var.release.email}"
  role               = "roles/iam.serviceAccountUser"
  member             = var.enqueuer
}

# --- App Engine -------------------------------------------------------------

resource "google_app_engine_application" "this" {
  count = try(var.app_engine.create, false) ? 1 : 0

  project     = var.project_id
  location_id = var.app_engine.location

  timeouts {
    create = "20m"
  }
}

# One fixed version: new code replaces it in place, and no traffic has to be moved.
resource "google_app_engine_standard_app_version" "release" {
  count = local.has_app_engine ? 1 : 0

  project          = var.project_id
  service          = var.app_engine.service
  version_id       = "live"
  runtime          = var.app_engine.runtime
  service_account  = var.release.email
  instance_class   = var.app_engine.instance_class
  inbound_services = ["INBOUND_SERVICE_WARMUP"]
  env_variables    = merge(var.environment, { TASK_QUEUES = join(",", local.all) })

  entrypoint {
    shell = "node app.mjs"
  }

  deployment {
    zip {
      source_url = "https://storage.googleapis.com/${var.app_engine.bucket}/${var.app_engine.object}"
    }
  }

  automatic_scaling {
    standard_scheduler_settings {
      min_instances = 0
      max_instances = var.app_engine.max_instances
    }
  }

  # The default service of an application can never be deleted.
  delete_service_on_destroy = var.app_engine.service != "default"
  noop_on_destroy           = var.app_engine.service == "default"

  depends_on = [
    google_app_engine_application.this,
    google_project_iam_member.release_image,
    google_project_iam_member.release_log,
    google_storage_bucket_iam_member.release,
  ]
}

# App Engine builds a version as the account that it runs as, into a repository of its own.
resource "google_storage_bucket_iam_member" "release" {
  count = local.has_app_engine ? 1 : 0

  bucket = var.app_engine.bucket
  role   = "roles/storage.objectViewer"
  member = var.release.member
}

resource "google_project_iam_member" "release_image" {
  count = local.has_app_engine ? 1 : 0

  project = var.project_id
  role    = "roles/artifactregistry.writer"
  member  = var.release.member
}

resource "google_project_iam_member" "release_log" {
  count = local.has_app_engine ? 1 : 0

  project = var.project_id
  role    = "roles/logging.logWriter"
  member  = var.release.member
}

# A task that calls App Engine may be made only by who may see the application.
resource "google_project_iam_member" "app_engine_viewer" {
  for_each = local.has_app_engine ? local.enqueuers : {}

  project = var.project_id
  role    = "roles/appengine.appViewer"
  member  = each.value
}
