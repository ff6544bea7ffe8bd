output "dashboard" {
  description = "Id of the dashboard."
  value       = google_monitoring_dashboard.this.id
}
