# Values of the form that the provider itself checks, under a mock too.

mock_data "google_project" {
  defaults = { number = "123456789012" }
}

mock_resource "google_service_account" {
  defaults = {
    id     = "projects/my-project-1/serviceAccounts/mock@my-project-1.iam.gserviceaccount.com"
    email  = "mock@my-project-1.iam.gserviceaccount.com"
    member = "serviceAccount:mock@my-project-1.iam.gserviceaccount.com"
  }
}

mock_resource "google_pubsub_topic" {
  defaults = { id = "projects/my-project-1/topics/mock" }
}

mock_resource "google_cloudfunctions2_function" {
  defaults = {
    service_config = { uri = "https://mock-abcdefghij-ew.a.run.app" }
  }
}

mock_resource "google_memorystore_instance" {
  defaults = {
    endpoints         = [{ connections = [{ psc_auto_connection = [{ ip_address = "10.0.0.3", port = 6379 }] }] }]
    managed_server_ca = [{ ca_certs = [{ certificates = ["-----BEGIN CERTIFICATE-----"] }] }]
  }
}
