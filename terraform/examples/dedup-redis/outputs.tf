output "publish_to" {
  description = "Topic to publish to."
  value       = module.toolkit.topics.final
}

output "subscribe_to" {
  description = "Topic that each message comes to once."
  value       = module.toolkit.topics.dedup_out
}

output "cache_address" {
  description = "Host and port of the cache."
  value       = module.toolkit.cache_address
}
