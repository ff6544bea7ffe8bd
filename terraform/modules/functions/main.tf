resource "google_cloudfunctions2_function" "this" {
  project  = var.project_id
  location = var.region
  name     = var.name
  labels   = var.labels

  build_config {
    runtime           = var.runtime
    entry_point       = var.entry_point
    service_account   = var.source_code.builder_id
    docker_repository = var.source_code.repository

    source {
      storage_source {
        bucket = var.source_code.bucket
        object = var.source_code.object
      }
    }
  }

  service_config {
    available_memory              = var.memory
    max_instance_count            = var.max_instances
    timeout_seconds               = var.timeout_seconds
    ingress_settings              = var.ingress
    service_account_email         = var.account_email
    vpc_connector                 = var.vpc_connector
    vpc_connector_egress_settings = var.vpc_connector == null ? null : "PRIVATE_RANGES_ONLY"
    environment_variables         = var.environment

    dynamic "secret_environment_variables" {
      for_each = var.secret_environment
      content {
        key        = secret_environment_variables.key
        project_id = var.project_id
        secret     = secret_environment_variables.value.secret
        version    = secret_environment_variables.value.version
      }
    }

    dynamic "secret_volumes" {
      for_each = var.secret_files
      content {
        mount_path = dirname(secret_volumes.key)
        project_id = var.project_id
        secret     = secret_volumes.value.secret

        versions {
          path    = basename(secret_volumes.key)
          version = secret_volumes.value.version
        }
      }
    }
  }
}

resource "google_service_account" "invoker" {
  project      = var.project_id
  account_id   = "${var.name}-invoker"
  display_name = "Pub/Sub toolkit ${var.entry_point}: whom its subscription and its schedules call as"
}

# A function of the second generation is a Cloud Run service of the same name.
resource "google_cloud_run_v2_service_iam_member" "invoker" {
  project  = var.project_id
  location = google_cloudfunctions2_function.this.location
  name     = google_cloudfunctions2_function.this.name
  role     = "roles/run.invoker"
  member   = google_service_account.invoker.member
}

resource "google_cloud_scheduler_job" "this" {
  for_each = var.schedules

  project          = var.project_id
  region           = var.region
  name             = "${var.name}-${each.key}"
  description      = "Pub/Sub toolkit: posts to ${each.value} of the ${var.entry_point} function"
  schedule         = "* * * * *"
  time_zone        = "Etc/UTC"
  attempt_deadline = "${max(15, var.timeout_seconds)}s"

  # The next minute comes anyway.
  retry_config {
    retry_count = 0
  }

  http_target {
    http_method = "POST"
    uri         = "${google_cloudfunctions2_function.this.service_config[0].uri}${each.value}"

    oidc_token {
      service_account_email = google_service_account.invoker.email
      audience              = google_cloudfunctions2_function.this.service_config[0].uri
    }
  }

  depends_on = [google_cloud_run_v2_service_iam_member.invoker]
}
