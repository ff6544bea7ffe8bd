output "worker" {
  description = "Service account that runs the function."
  value = {
    email  = google_service_account.worker.email
    member = google_service_account.worker.member
  }
}

output "invoker_email" {
  description = "Service account that the push subscription calls with."
  value       = google_service_account.invoker.email
}

output "uri" {
  description = "URI of the function."
  value       = google_cloudfunctions2_function.this.service_config[0].uri
}

output "subscription_id" {
  description = "Subscription id."
  value       = google_pubsub_subscription.this.id
}

output "subscription_name" {
  description = "Subscription name."
  value       = google_pubsub_subscription.this.name
}

output "dead_letter_subscription_name" {
  description = "Name of the subscription on the dead-letter topic."
  value       = google_pubsub_subscription.dead_letter.name
}
