# --- accounts ---------------------------------------------------------------

resource "google_service_account" "deployable" {
  for_each = setunion(local.functions, local.has_release ? ["release"] : [])

  project      = var.project_id
  account_id   = "${var.name_prefix}-${each.key}"
  display_name = "Pub/Sub toolkit ${each.key}: ${each.key == "release" ? "publishes what is due" : "runs the function"}"

  depends_on = [module.services]
}

# --- functions and what is pushed to them -----------------------------------

locals {
  sources = { dedup = local.topics.final, fifo = local.topics.fifo, delay = local.topics.delayed }
  ca_file = "/etc/pubsub-toolkit/ca.pem"
  secrets = { for name in local.functions : name => name == "dedup" && local.uses_cache ? module.cache[0].secrets : {} }
}

module "subscription" {
  source   = "./modules/subscription"
  for_each = local.functions

  project_id                    = var.project_id
  name                          = "${var.name_prefix}-${each.key}"
  topic_id                      = local.sources[each.key]
  pubsub_agent                  = local.pubsub_agent
  push                          = module.function[each.key].push
  ack_deadline_seconds          = var.subscription.ack_deadline_seconds
  retention_seconds             = var.subscription.retention_seconds
  minimum_backoff_seconds       = var.subscription.minimum_backoff_seconds
  maximum_backoff_seconds       = var.subscription.maximum_backoff_seconds
  max_delivery_attempts         = each.key == "fifo" ? var.fifo.max_delivery_attempts : var.subscription.max_delivery_attempts
  dead_letter_retention_seconds = var.subscription.dead_letter_retention_seconds
  dead_letter_publishers = {
    for who, account in google_service_account.deployable : who => account.member
    if who == each.key || (each.key == "delay" && who == "release" && local.uses_app_engine)
  }
  labels = var.labels

  depends_on = [module.services, module.topic]
}

module "function" {
  source   = "./modules/functions"
  for_each = local.functions

  project_id      = var.project_id
  region          = var.region
  name            = "${var.name_prefix}-${each.key}"
  entry_point     = each.key
  runtime         = var.runtime
  account_email   = google_service_account.deployable[each.key].email
  environment     = local.environment[each.key]
  timeout_seconds = var.functions.timeout_seconds
  memory          = var.functions.memory
  max_instances   = var.functions.max_instances
  ingress         = var.functions.ingress
  schedules       = each.key == "fifo" ? { sweep = "/sweep", relay = "/relay" } : {}
  labels          = var.labels

  source_code = {
    bucket     = module.sources.bucket
    object     = try(module.sources.objects["functions"], "missing")
    builder_id = module.sources.builder_id
    repository = module.sources.repository
  }

  secret_environment = { for name, secret in local.secrets[each.key] : "REDIS_URL" => secret if name == "url" }
  secret_files       = { for name, secret in local.secrets[each.key] : local.ca_file => secret if name == "ca" }
  vpc_connector      = length(local.secrets[each.key]) > 0 ? module.cache[0].vpc_connector : null

  # A function connects before it takes a request, and is not deployed where it may not.
  depends_on = [
    module.services,
    google_project_iam_member.datastore_user,
    google_pubsub_topic_iam_member.publisher,
    google_secret_manager_secret_iam_member.reader,
  ]
}

# --- delay ------------------------------------------------------------------

locals {
  # App Engine calls two regions by other names than the rest of the cloud.
  app_engine_aliases  = { europe-west1 = "europe-west", us-central1 = "us-central" }
  app_engine_regions  = { for region, alias in local.app_engine_aliases : alias => region }
  app_engine_given    = coalesce(var.app_engine.location, var.region)
  app_engine_location = lookup(local.app_engine_aliases, local.app_engine_given, local.app_engine_given)
  app_engine_region   = lookup(local.app_engine_regions, local.app_engine_given, local.app_engine_given)
  app_engine_service  = coalesce(var.app_engine.service, var.app_engine.create ? "default" : "release")

  queue_region = coalesce(var.queues.region, local.uses_app_engine ? local.app_engine_region : var.region)
}

module "delay" {
  source = "./modules/delay"
  count  = var.features.delay ? 1 : 0

  project_id  = var.project_id
  region      = local.queue_region
  name        = "${var.name_prefix}-delay"
  queues      = var.queues
  enqueuer    = google_service_account.deployable["delay"].member
  environment = local.release_environment

  release = {
    email  = google_service_account.deployable["release"].email
    member = google_service_account.deployable["release"].member
  }

  app_engine = local.uses_app_engine ? {
    create         = var.app_engine.create
    location       = local.app_engine_location
    service        = local.app_engine_service
    instance_class = var.app_engine.instance_class
    max_instances  = var.app_engine.max_instances
    runtime        = var.runtime
    bucket         = module.sources.bucket
    object         = try(module.sources.objects["appengine"], "missing")
  } : null

  depends_on = [module.services]
}
