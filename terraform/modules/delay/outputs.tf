output "queue_id" {
  description = "Cloud Tasks queue."
  value       = google_cloud_tasks_queue.this.id
}

output "release" {
  description = "Service account of the App Engine service."
  value = {
    email  = google_service_account.release.email
    member = google_service_account.release.member
  }
}
