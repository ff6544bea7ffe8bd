# Everything, as it might run for a shop: orders once, their steps in order, reminders later, and somebody who is told when one of them is stuck.
module "toolkit" {
  source = "../.."

  project_id  = var.project_id
  region      = var.region
  name_prefix = "shop"
  labels      = { team = "orders" }

  features = { dedup = true, fifo = true, delay = true }

  # The steps of an order have a topic of their own, which publishers with an outbox number.
  topics = { fifo = google_pubsub_topic.steps.name }

  subscription = {
    ack_deadline_seconds    = 120
    minimum_backoff_seconds = 5
    maximum_backoff_seconds = 300
    max_delivery_attempts   = 20
  }
  functions = { timeout_seconds = 120, memory = "1G", max_instances = 50 }

  # Two queues dispatch 1,000 reminders a second; one may be moved to a topic of its own.
  queues = { count = 2 }
  delay  = { target_topics = [google_pubsub_topic.reminders.name] }

  settings = {
    dedup   = { DEDUP_KEY = "attribute:order-id" }
    fifo    = { FIFO_ON_POISON = "divert", FIFO_LANE_TOPIC = google_pubsub_topic.lane.name }
    delay   = { DELAY_LEDGER = "all" }
    release = { DELAY_MAX_ATTEMPTS = "50" }
  }

  firestore  = { name = "shop-pubsub", delete_on_destroy = true }
  app_engine = { max_instances = 20 }

  notification_channels = google_monitoring_notification_channel.email[*].name
  alerts                = { oldest_unacked_seconds = 300, lateness_seconds = 30 }
}

resource "google_pubsub_topic" "steps" {
  name = "shop-steps"
}

resource "google_pubsub_topic" "reminders" {
  name = "shop-reminders"
}

resource "google_pubsub_topic" "lane" {
  name = "shop-lane"
}

resource "google_monitoring_notification_channel" "email" {
  count = var.alert_email == null ? 0 : 1

  display_name = "Orders on call"
  type         = "email"
  labels       = { email_address = var.alert_email }
}
