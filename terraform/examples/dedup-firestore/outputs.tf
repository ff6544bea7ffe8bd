output "publish_to" {
  description = "Topic to publish to."
  value       = module.toolkit.topics.final
}

output "subscribe_to" {
  description = "Topic that each message comes to once."
  value       = module.toolkit.topics.dedup_out
}

output "dead_letters" {
  description = "Subscription that keeps what could not be handled."
  value       = module.toolkit.dead_letter_subscriptions.dedup
}
