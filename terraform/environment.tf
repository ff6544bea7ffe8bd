# What each deployable is told. `settings.json` says which further names each of them reads.

locals {
  database = one(module.firestore[*].database)

  state_environment = local.uses_firestore ? {
    FIRESTORE_DATABASE = local.database
    COLLECTION_PREFIX  = var.firestore.collection_prefix
  } : {}

  # A key outlives every delivery of its message: those of its subscription, and then those of a dead letter that is published again.
  dedup_ttl_seconds = var.subscription.retention_seconds + var.subscription.dead_letter_retention_seconds + 86400
  # A lease outlives the time in which Pub/Sub waits for an answer.
  dedup_environment = {
    DEDUP_TTL_SECONDS = tostring(local.dedup_ttl_seconds)
    DEDUP_LEASE_MS    = tostring(max(60000, var.subscription.ack_deadline_seconds * 1000))
  }

  sinks = {
    for name in ["dedup", "fifo"] : name =>
    local.sink_topics[name] == null ? var.sinks[name] : local.topics["${name}_out"] == null ? null : "topic:${local.topics["${name}_out"]}"
  }
  store = !local.uses_cache ? "firestore" : var.cache.two_tier ? "two-tier" : "redis"

  delay_environment = merge(
    { FINAL_TOPIC = local.topics.final },
    length(local.target_topics) > 0 ? { TARGET_TOPICS = join(",", local.target_topics) } : {},
  )

  common_environment = {
    for name in local.functions : name => {
      GOOGLE_CLOUD_PROJECT = var.project_id
      DEAD_LETTER_TOPIC    = "projects/${var.project_id}/topics/${var.name_prefix}-${name}-dead-letter"
    }
  }

  # A map for each, as objects of different attributes cannot be chosen from.
  own_environment = {
    dedup = merge(
      local.dedup_environment,
      { CONSUMER = "${var.name_prefix}-dedup", SINK = local.sinks.dedup, STORE = local.store },
      local.uses_cache ? { REDIS_CA_FILE = local.ca_file } : {},
      local.uses_cache && !var.cache.two_tier ? {} : local.state_environment,
    )
    fifo = merge(local.dedup_environment, local.state_environment, { CONSUMER = "${var.name_prefix}-fifo", SINK = local.sinks.fifo })
    delay = merge(
      local.state_environment,
      local.delay_environment,
      {
        DELAY_MODE  = var.delay.mode
        TASK_QUEUES = join(",", flatten(module.delay[*].active_queues))
      },
      local.uses_app_engine ? { RELEASE_SERVICE = local.app_engine_service } : {},
      local.has_release && !local.uses_app_engine ? { RELEASE_ACCOUNT = google_service_account.deployable["release"].email } : {},
    )
  }

  # App Engine itself tells the project, and the delay module the queues.
  release_environment = local.uses_app_engine ? merge(
    local.state_environment,
    local.delay_environment,
    { DEAD_LETTER_TOPIC = local.common_environment["delay"].DEAD_LETTER_TOPIC },
    var.settings.release,
  ) : {}

  environment = { for name in local.functions : name => merge(local.common_environment[name], local.own_environment[name], var.settings[name]) }
}
