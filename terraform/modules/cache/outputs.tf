output "address" {
  description = "Host and port, as host:port."
  value       = local.address
}

output "vpc_connector" {
  description = "Connector through which functions reach it."
  value       = var.vpc_connector == null ? google_vpc_access_connector.this[0].id : var.vpc_connector
}

output "secrets" {
  description = "Where the URL with its password (`url`) and the certificate of the authority (`ca`) lie: id and version of each secret. A new version is a new revision of who reads it."
  value = {
    url = { secret = google_secret_manager_secret.this["url"].secret_id, version = google_secret_manager_secret_version.url.version }
    ca  = { secret = google_secret_manager_secret.this["ca"].secret_id, version = google_secret_manager_secret_version.ca.version }
  }
}
