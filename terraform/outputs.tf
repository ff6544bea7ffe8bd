output "topics" {
  description = "Topic ids: where to publish, and where a sink of its own publishes to."
  value = merge(
    { final = module.final_topic.id },
    var.features.delay ? { delayed = module.delayed_topic[0].id } : {},
    { for name, topic in module.sink_topic : "${name}_out" => topic.id },
  )
}

output "subscriptions" {
  description = "Subscription ids by feature."
  value       = { for name, function in module.function : name => function.subscription_id }
}

output "function_uris" {
  description = "URI of each function."
  value       = { for name, function in module.function : name => function.uri }
}

output "service_accounts" {
  description = "E-mail of each service account, by role."
  value = merge(
    { for name, function in module.function : "${name}_worker" => function.worker.email },
    { for name, function in module.function : "${name}_invoker" => function.invoker_email },
    var.features.delay ? { release = module.delay[0].release.email } : {},
  )
}

output "firestore_database" {
  description = "Name of the Firestore database."
  value       = module.firestore.database_name
}

output "cache_address" {
  description = "Host and port of the cache, or null."
  value       = one(module.cache[*].address)
}

output "task_queue" {
  description = "Id of the Cloud Tasks queue, or null."
  value       = one(module.delay[*].queue_id)
}
