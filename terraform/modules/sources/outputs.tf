output "bucket" {
  description = "Name of the source bucket."
  value       = google_storage_bucket.this.name
}

output "objects" {
  description = "Object names by component."
  value       = { for component, object in google_storage_bucket_object.this : component => object.name }
}

output "repository" {
  description = "Full id of the repository that takes the images."
  value       = google_artifact_registry_repository.this.id
}

output "builder_id" {
  description = "Full id of the service account that builds the functions; known once it may build."
  value       = google_service_account.builder.id

  depends_on = [
    google_artifact_registry_repository_iam_member.builder,
    google_project_iam_member.builder_log,
    google_storage_bucket_iam_member.builder,
  ]
}
