data "google_project" "this" {
  project_id = var.project_id
}

locals {
  pubsub_agent = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"

  functions       = toset([for name in ["dedup", "fifo", "delay"] : name if var.features[name]])
  has_release     = var.features.delay
  uses_app_engine = var.features.delay && var.delay.mode == "handler"
  uses_cache      = var.features.dedup && var.dedup_backend != "firestore"
  uses_firestore  = var.features.fifo || var.features.delay || (var.features.dedup && (!local.uses_cache || var.cache.two_tier))
}

# --- APIs -------------------------------------------------------------------

locals {
  apis = concat(
    [
      "artifactregistry.googleapis.com", "cloudbuild.googleapis.com", "cloudfunctions.googleapis.com", "iam.googleapis.com",
      "pubsub.googleapis.com", "run.googleapis.com", "storage.googleapis.com",
    ],
    local.uses_firestore ? ["firestore.googleapis.com"] : [],
    local.uses_cache ? ["compute.googleapis.com", "secretmanager.googleapis.com", "vpcaccess.googleapis.com"] : [],
    local.uses_cache && var.dedup_backend == "redis" ? ["redis.googleapis.com"] : [],
    local.uses_cache && var.dedup_backend == "valkey" ? ["memorystore.googleapis.com", "networkconnectivity.googleapis.com"] : [],
    var.features.delay ? ["cloudtasks.googleapis.com"] : [],
    local.uses_app_engine ? ["appengine.googleapis.com"] : [],
    var.features.fifo ? ["cloudscheduler.googleapis.com"] : [],
    var.features.observability ? ["logging.googleapis.com", "monitoring.googleapis.com"] : [],
  )
}

module "services" {
  source = "./modules/services"

  project_id = var.project_id
  services   = var.enable_apis ? local.apis : []
}

# --- code -------------------------------------------------------------------

locals {
  archives = {
    functions = coalesce(var.source_archives.functions, "${path.module}/../dist/deploy/functions.zip")
    appengine = coalesce(var.source_archives.appengine, "${path.module}/../dist/deploy/appengine.zip")
  }
  needed_archives = { for component, path in local.archives : component => path if component != "appengine" || local.uses_app_engine }
}

module "sources" {
  source = "./modules/sources"

  project_id  = var.project_id
  region      = var.region
  name_prefix = var.name_prefix
  # What is missing is told by a rule, with the name of its variable.
  archives = { for component, path in local.needed_archives : component => path if fileexists(path) }
  labels   = var.labels

  depends_on = [module.services]
}

# --- state ------------------------------------------------------------------

locals {
  definitions = jsondecode(file("${path.module}/firestore.indexes.json"))

  # Dedup alone touches one collection, unless its handler sends through the outbox.
  needs_all   = var.features.fifo || var.features.delay || lookup(var.settings.dedup, "DEDUP_MODE", "lease") == "inbox"
  collections = local.needs_all ? distinct(local.definitions.fieldOverrides[*].collectionGroup) : ["ptk-dedup"]
}

module "firestore" {
  source = "./modules/firestore"
  count  = local.uses_firestore ? 1 : 0

  project_id        = var.project_id
  create            = var.firestore.create
  name              = var.firestore.name
  location          = coalesce(var.firestore.location, var.region)
  delete_on_destroy = var.firestore.delete_on_destroy
  collection_prefix = var.firestore.collection_prefix
  definitions = {
    indexes        = [for index in local.definitions.indexes : index if contains(local.collections, index.collectionGroup)]
    fieldOverrides = [for override in local.definitions.fieldOverrides : override if contains(local.collections, override.collectionGroup)]
  }

  depends_on = [module.services]
}

locals {
  # One of the other engine is told by a rule.
  cache_version = try(startswith(var.cache.version, "${upper(var.dedup_backend)}_"), false) ? var.cache.version : null
}

module "cache" {
  source = "./modules/cache"
  count  = local.uses_cache ? 1 : 0

  project_id     = var.project_id
  region         = var.region
  name           = "${var.name_prefix}-dedup"
  engine         = var.dedup_backend
  network        = var.cache.network
  subnetwork     = var.cache.subnetwork
  vpc_connector  = var.cache.vpc_connector
  connector_cidr = var.cache.connector_cidr
  memory_size_gb = var.cache.memory_size_gb
  tier           = var.cache.tier
  engine_version = local.cache_version
  replica_count  = var.cache.replica_count
  labels         = var.labels

  depends_on = [module.services]
}

# --- topics -----------------------------------------------------------------

locals {
  sink_topics = {
    for name in ["dedup", "fifo"] : name => (
      var.sinks[name] == null ? "${var.name_prefix}-${name}-out" : startswith(var.sinks[name], "topic:") ? trimprefix(var.sinks[name], "topic:") : null
    )
  }

  uses_final = var.features.dedup || var.features.delay || (var.features.fifo && var.topics.fifo == null)
  made_topics = {
    for key, topic in {
      final     = { name = "${var.name_prefix}-final", made = local.uses_final && var.topics.final == null, retention_seconds = null }
      delayed   = { name = "${var.name_prefix}-delayed", made = var.features.delay && var.topics.delayed == null, retention_seconds = null }
      dedup_out = { name = "${var.name_prefix}-dedup-out", made = var.features.dedup && var.sinks.dedup == null, retention_seconds = 86400 }
      fifo_out  = { name = "${var.name_prefix}-fifo-out", made = var.features.fifo && var.sinks.fifo == null, retention_seconds = 86400 }
    } : key => topic if topic.made
  }

  # Full names, by what a topic is for; null where nothing uses it.
  short_topics = {
    final     = local.uses_final ? coalesce(var.topics.final, "${var.name_prefix}-final") : null
    fifo      = var.features.fifo ? coalesce(var.topics.fifo, var.topics.final, "${var.name_prefix}-final") : null
    delayed   = var.features.delay ? coalesce(var.topics.delayed, "${var.name_prefix}-delayed") : null
    dedup_out = var.features.dedup ? local.sink_topics.dedup : null
    fifo_out  = var.features.fifo ? local.sink_topics.fifo : null
  }
  topics = {
    for key, topic in local.short_topics : key =>
    topic == null ? null : startswith(topic, "projects/") ? topic : "projects/${var.project_id}/topics/${topic}"
  }
  target_topics = [for topic in var.delay.target_topics : startswith(topic, "projects/") ? topic : "projects/${var.project_id}/topics/${topic}"]
}

module "topic" {
  source   = "./modules/topic"
  for_each = local.made_topics

  project_id = var.project_id
  name       = each.value.name
  labels     = var.labels

  # Nobody subscribes to an output yet: who comes within a day may seek back to what was sent before.
  retention_seconds = each.value.retention_seconds

  depends_on = [module.services]
}

# --- observability ----------------------------------------------------------

module "observability" {
  source = "./modules/observability"
  count  = var.features.observability ? 1 : 0

  project_id                = var.project_id
  name_prefix               = var.name_prefix
  notification_channels     = var.notification_channels
  thresholds                = var.alerts
  functions                 = { for name, function in module.function : name => function.name }
  subscriptions             = { for name, subscription in module.subscription : name => subscription.name }
  dead_letter_subscriptions = { for name, subscription in module.subscription : name => subscription.dead_letter_subscription.name }
  queues                    = flatten(module.delay[*].queue_names)
  app_engine_service        = local.uses_app_engine ? local.app_engine_service : null
  labels                    = var.labels

  depends_on = [module.services]
}
