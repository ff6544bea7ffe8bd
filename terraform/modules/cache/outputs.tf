output "address" {
  description = "Host and port, as host:port."
  value       = local.address
}

output "url_secret_id" {
  description = "Secret that holds the URL, with the password."
  value       = google_secret_manager_secret_version.url.secret
}

output "ca_secret_id" {
  description = "Secret that holds the certificate of the authority."
  value       = google_secret_manager_secret_version.ca.secret
}
