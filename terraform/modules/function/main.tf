# --- identities -------------------------------------------------------------

resource "google_service_account" "worker" {
  project      = var.project_id
  account_id   = "${var.name}-worker"
  display_name = "Pub/Sub toolkit ${var.entry_point}: runs the function"
}

resource "google_service_account" "invoker" {
  project      = var.project_id
  account_id   = "${var.name}-invoker"
  display_name = "Pub/Sub toolkit ${var.entry_point}: identity of the push subscription"
}

# --- function ---------------------------------------------------------------

resource "google_cloudfunctions2_function" "this" {
  project  = var.project_id
  location = var.region
  name     = var.name
  labels   = var.labels

  build_config {
    runtime         = var.runtime
    entry_point     = var.entry_point
    service_account = var.source_code.builder_id

    source {
      storage_source {
        bucket = var.source_code.bucket
        object = var.source_code.object
      }
    }
  }

  service_config {
    available_memory              = "256M"
    max_instance_count            = 20
    timeout_seconds               = 60
    ingress_settings              = "ALLOW_INTERNAL_ONLY"
    service_account_email         = google_service_account.worker.email
    vpc_connector                 = var.vpc_connector
    vpc_connector_egress_settings = var.vpc_connector == null ? null : "PRIVATE_RANGES_ONLY"
    environment_variables         = merge(var.environment, { DEAD_LETTER_TOPIC = module.dead_letter.id })

    dynamic "secret_environment_variables" {
      for_each = var.secret_environment
      content {
        key        = secret_environment_variables.key
        project_id = var.project_id
        secret     = secret_environment_variables.value
        version    = "latest"
      }
    }

    dynamic "secret_volumes" {
      for_each = var.secret_files
      content {
        mount_path = dirname(secret_volumes.key)
        project_id = var.project_id
        secret     = secret_volumes.value
        versions {
          path    = basename(secret_volumes.key)
          version = "latest"
        }
      }
    }
  }

  depends_on = [google_secret_manager_secret_iam_member.worker]
}

resource "google_secret_manager_secret_iam_member" "worker" {
  for_each = merge(var.secret_environment, var.secret_files)

  project   = var.project_id
  secret_id = each.value
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.worker.member
}

resource "google_cloud_run_v2_service_iam_member" "invoker" {
  project  = var.project_id
  location = google_cloudfunctions2_function.this.location
  name     = google_cloudfunctions2_function.this.name
  role     = "roles/run.invoker"
  member   = google_service_account.invoker.member
}

# --- subscription -----------------------------------------------------------

resource "google_pubsub_subscription" "this" {
  project                    = var.project_id
  name                       = var.name
  topic                      = var.topic_id
  ack_deadline_seconds       = var.subscription.ack_deadline_seconds
  message_retention_duration = var.subscription.message_retention_duration
  labels                     = var.labels

  # An early message that is nacked would stay in front of its predecessor for ever.
  enable_message_ordering = false

  push_config {
    push_endpoint = google_cloudfunctions2_function.this.service_config[0].uri
    oidc_token {
      service_account_email = google_service_account.invoker.email
      audience              = google_cloudfunctions2_function.this.service_config[0].uri
    }
  }

  dead_letter_policy {
    dead_letter_topic     = module.dead_letter.id
    max_delivery_attempts = var.subscription.max_delivery_attempts
  }

  retry_policy {
    minimum_backoff = var.subscription.minimum_backoff
    maximum_backoff = var.subscription.maximum_backoff
  }

  expiration_policy {
    ttl = ""
  }

  depends_on = [google_cloud_run_v2_service_iam_member.invoker, google_pubsub_topic_iam_member.dead_letter_publisher]
}

# --- dead letters -----------------------------------------------------------

module "dead_letter" {
  source     = "../topic"
  project_id = var.project_id
  name       = "${var.name}-dead-letter"
  labels     = var.labels
}

# A dead-letter topic without a subscription keeps nothing.
resource "google_pubsub_subscription" "dead_letter" {
  project                    = var.project_id
  name                       = "${var.name}-dead-letter"
  topic                      = module.dead_letter.id
  labels                     = var.labels
  message_retention_duration = "2678400s"

  expiration_policy {
    ttl = ""
  }
}

# Pub/Sub forwards what failed too often; the function sets aside what can never succeed.
resource "google_pubsub_topic_iam_member" "dead_letter_publisher" {
  for_each = { service = var.pubsub_agent, function = google_service_account.worker.member }

  project = var.project_id
  topic   = module.dead_letter.name
  role    = "roles/pubsub.publisher"
  member  = each.value
}

resource "google_pubsub_subscription_iam_member" "dead_letter_subscriber" {
  project      = var.project_id
  subscription = google_pubsub_subscription.this.name
  role         = "roles/pubsub.subscriber"
  member       = var.pubsub_agent

  lifecycle {
    replace_triggered_by = [google_pubsub_subscription.this.id]
  }
}
