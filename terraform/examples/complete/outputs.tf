output "topics" {
  description = "Where to publish, and what comes out."
  value       = module.toolkit.topics
}

output "dead_letter_subscriptions" {
  description = "What keeps the dead letters."
  value       = module.toolkit.dead_letter_subscriptions
}

output "service_accounts" {
  description = "As whom the deployables run."
  value       = module.toolkit.service_accounts
}

output "dashboard" {
  description = "Id of the dashboard."
  value       = module.toolkit.dashboard
}
