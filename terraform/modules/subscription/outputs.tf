output "id" {
  description = "Full id of the subscription."
  value       = google_pubsub_subscription.this.id
}

output "name" {
  description = "Name of the subscription."
  value       = google_pubsub_subscription.this.name
}

output "dead_letter_topic" {
  description = "Full id, name and project of the topic of the dead letters."
  value       = module.dead_letter.topic
}

output "dead_letter_subscription" {
  description = "Full id and name of the subscription that keeps the dead letters."
  value = {
    id   = google_pubsub_subscription.dead_letter.id
    name = google_pubsub_subscription.dead_letter.name
  }
}
