output "publish_to" {
  description = "Topic for messages that are due later."
  value       = module.toolkit.topics.delayed
}

output "subscribe_to" {
  description = "Topic that they come to when they are due."
  value       = module.toolkit.topics.final
}

output "task_queues" {
  description = "Queues that hold them."
  value       = module.toolkit.task_queues
}
