output "name" {
  description = "Name of the function, and of its Cloud Run service."
  value       = google_cloudfunctions2_function.this.name
}

output "push" {
  description = "URI of the function, and the service account that may call it; known once it may."
  value = {
    endpoint = google_cloudfunctions2_function.this.service_config[0].uri
    account  = google_service_account.invoker.email
  }

  # Else the first pushes would be refused, and each is a delivery attempt.
  depends_on = [google_cloud_run_v2_service_iam_member.invoker]
}
