resource "google_storage_bucket" "this" {
  project                     = var.project_id
  name                        = "${var.project_id}-${var.name_prefix}-src"
  location                    = upper(var.region)
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true
  labels                      = var.labels
}

# The hash in the name makes new code a new object, and a new object a new deployment.
resource "google_storage_bucket_object" "this" {
  for_each = var.archives

  bucket = google_storage_bucket.this.name
  name   = "${each.key}-${filesha256(each.value)}.zip"
  source = each.value
}

resource "google_artifact_registry_repository" "this" {
  project       = var.project_id
  location      = var.region
  repository_id = "${var.name_prefix}-functions"
  description   = "Pub/Sub toolkit: images of the functions"
  format        = "DOCKER"
  labels        = var.labels
}

resource "google_service_account" "builder" {
  project      = var.project_id
  account_id   = "${var.name_prefix}-builder"
  display_name = "Pub/Sub toolkit: builds the functions"
}

resource "google_storage_bucket_iam_member" "builder" {
  bucket = google_storage_bucket.this.name
  role   = "roles/storage.objectViewer"
  member = google_service_account.builder.member
}

resource "google_artifact_registry_repository_iam_member" "builder" {
  project    = var.project_id
  location   = google_artifact_registry_repository.this.location
  repository = google_artifact_registry_repository.this.repository_id
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.builder.member
}

resource "google_project_iam_member" "builder_log" {
  project = var.project_id
  role    = "roles/logging.logWriter"
  member  = google_service_account.builder.member
}
