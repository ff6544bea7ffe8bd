output "active_queues" {
  description = "Full names of the queues that take new tasks; known once tasks may be made."
  value       = local.active

  depends_on = [
    google_cloud_tasks_queue_iam_member.deleter,
    google_cloud_tasks_queue_iam_member.enqueuer,
    google_project_iam_member.app_engine_viewer,
    google_service_account_iam_member.enqueuer,
  ]
}

output "queues" {
  description = "Full names of all queues, also of those that only empty themselves."
  value       = local.all
}

output "queue_names" {
  description = "Names of all queues."
  value       = local.names
}

output "service" {
  description = "Name of the App Engine service, or null."
  value       = one(google_app_engine_standard_app_version.release[*].service)
}
