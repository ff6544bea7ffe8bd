output "publish_to" {
  description = "Topic for numbered messages."
  value       = module.toolkit.topics.fifo
}

output "subscribe_to" {
  description = "Topic that they come to in order, or null."
  value       = lookup(module.toolkit.topics, "fifo_out", null)
}

output "environment" {
  description = "What publishers that number their messages are told: the same database."
  value       = { for name, value in module.toolkit.environment.fifo : name => value if contains(["GOOGLE_CLOUD_PROJECT", "FIRESTORE_DATABASE", "COLLECTION_PREFIX"], name) }
}
