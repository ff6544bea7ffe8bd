output "topics" {
  description = "Full names of the topics: `final` and `delayed` to publish to, `fifo` for numbered messages, `dedup_out` and `fifo_out` behind a function whose sink is a topic."
  value       = { for key, topic in local.topics : key => topic if topic != null }

  depends_on = [module.topic]
}

output "subscriptions" {
  description = "Full names of the subscriptions that push, by function."
  value       = { for name, subscription in module.subscription : name => subscription.id }
}

output "dead_letter_subscriptions" {
  description = "Full names of the subscriptions that keep the dead letters, by function: what `pubsub-toolkit redrive` reads."
  value       = { for name, subscription in module.subscription : name => subscription.dead_letter_subscription.id }
}

output "function_uris" {
  description = "URI of each function."
  value       = { for name, function in module.function : name => function.push.endpoint }
}

output "service_accounts" {
  description = "E-mail of the service account of each deployable, for grants of your own, as on what a module sink calls."
  value       = { for name, account in google_service_account.deployable : name => account.email }
}

output "firestore_database" {
  description = "Id of the Firestore database, or null."
  value       = local.database
}

output "cache_address" {
  description = "Host and port of the cache, or null. Its URL with the password is the secret PREFIX-dedup-url."
  value       = one(module.cache[*].address)
}

output "task_queues" {
  description = "Full names of the queues of delayed messages; the draining ones last."
  value       = flatten(module.delay[*].queues)
}

output "app_engine_service" {
  description = "App Engine service that releases, or null."
  value       = one(flatten(module.delay[*].service))
}

output "environment" {
  description = "What each function is told, without secrets: for commands and processes of your own that work on the same state."
  value       = local.environment
}

output "dashboard" {
  description = "Id of the dashboard, or null."
  value       = one(module.observability[*].dashboard)
}
