output "bucket" {
  description = "Name of the source bucket."
  value       = google_storage_bucket.this.name
}

output "objects" {
  description = "Object names by component."
  value       = { for component, object in google_storage_bucket_object.this : component => object.name }
}

output "builder_id" {
  description = "Full id of the service account that builds the functions; known once it may build."
  value       = google_service_account.builder.id

  depends_on = [google_project_iam_member.builder, google_storage_bucket_iam_member.builder]
}
