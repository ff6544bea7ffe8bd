resource "google_pubsub_subscription" "this" {
  project                    = var.project_id
  name                       = var.name
  topic                      = var.topic_id
  ack_deadline_seconds       = var.ack_deadline_seconds
  message_retention_duration = "${var.retention_seconds}s"
  labels                     = var.labels

  # An early message that is given back would stay in front of its predecessor for ever.
  enable_message_ordering = false

  dynamic "push_config" {
    for_each = var.push == null ? [] : [var.push]
    content {
      push_endpoint = push_config.value.endpoint

      oidc_token {
        service_account_email = push_config.value.account
        audience              = push_config.value.endpoint
      }
    }
  }

  dynamic "dead_letter_policy" {
    for_each = var.max_delivery_attempts == 0 ? [] : [var.max_delivery_attempts]
    content {
      dead_letter_topic     = module.dead_letter.topic.id
      max_delivery_attempts = dead_letter_policy.value
    }
  }

  retry_policy {
    minimum_backoff = "${var.minimum_backoff_seconds}s"
    maximum_backoff = "${var.maximum_backoff_seconds}s"
  }

  # Without it a subscription that was idle for 31 days is deleted, with what it is sent from then on.
  expiration_policy {
    ttl = ""
  }

  depends_on = [google_pubsub_topic_iam_member.dead_letter_agent, google_pubsub_topic_iam_member.dead_letter_publisher]
}

module "dead_letter" {
  source = "../topic"

  project_id = var.project_id
  name       = "${var.name}-dead-letter"
  labels     = var.labels
}

# A dead-letter topic without a subscription keeps nothing.
resource "google_pubsub_subscription" "dead_letter" {
  project                    = var.project_id
  name                       = "${var.name}-dead-letter"
  topic                      = module.dead_letter.topic.id
  ack_deadline_seconds       = 60
  message_retention_duration = "${var.dead_letter_retention_seconds}s"
  labels                     = var.labels

  expiration_policy {
    ttl = ""
  }
}

# Without this and the grant on the subscription Pub/Sub forwards nothing and says nothing: the message is delivered for ever.
resource "google_pubsub_topic_iam_member" "dead_letter_agent" {
  project = var.project_id
  topic   = module.dead_letter.topic.name
  role    = "roles/pubsub.publisher"
  member  = var.pubsub_agent
}

resource "google_pubsub_topic_iam_member" "dead_letter_publisher" {
  for_each = var.dead_letter_publishers

  project = var.project_id
  topic   = module.dead_letter.topic.name
  role    = "roles/pubsub.publisher"
  member  = each.value
}

resource "google_pubsub_subscription_iam_member" "agent" {
  project      = var.project_id
  subscription = google_pubsub_subscription.this.name
  role         = "roles/pubsub.subscriber"
  member       = var.pubsub_agent

  # A subscription that is replaced loses what was granted on it.
  lifecycle {
    replace_triggered_by = [google_pubsub_subscription.this.id]
  }
}
