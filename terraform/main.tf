data "google_project" "this" {
  project_id = var.project_id
}

locals {
  pubsub_agent = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"

  # App Engine calls two regions by other names than the rest of the cloud.
  app_engine_aliases  = { europe-west1 = "europe-west", us-central1 = "us-central" }
  app_engine_location = coalesce(var.app_engine.location, lookup(local.app_engine_aliases, var.region, var.region))

  # Records with an end carry it in `expireAt`. Counters, cursors, parked messages and relay leases have none.
  ttl_collections = ["ptk-dedup", "ptk-outbox", "ptk-delays", "ptk-payloads", "ptk-lateness"]

  uses_cache = var.features.dedup && var.dedup_backend != "firestore"
  functions  = toset([for name in ["dedup", "delay", "fifo"] : name if var.features[name]])

  apis = concat(
    [
      "artifactregistry.googleapis.com", "cloudbuild.googleapis.com", "cloudfunctions.googleapis.com", "firestore.googleapis.com",
      "iam.googleapis.com", "pubsub.googleapis.com", "run.googleapis.com", "storage.googleapis.com",
    ],
    local.uses_cache ? ["compute.googleapis.com", "secretmanager.googleapis.com"] : [],
    local.uses_cache && var.dedup_backend == "redis" ? ["redis.googleapis.com"] : [],
    local.uses_cache && var.dedup_backend == "valkey" ? ["memorystore.googleapis.com", "networkconnectivity.googleapis.com"] : [],
    var.features.delay ? ["appengine.googleapis.com", "cloudtasks.googleapis.com"] : [],
    var.features.observability ? ["monitoring.googleapis.com"] : [],
  )
}

module "services" {
  source     = "./modules/services"
  project_id = var.project_id
  services   = var.enable_apis ? local.apis : []
}

module "sources" {
  source = "./modules/sources"

  project_id  = var.project_id
  region      = var.region
  name_prefix = var.name_prefix
  archives = merge(
    { functions = var.source_archives.functions },
    var.features.delay ? { appengine = var.source_archives.appengine } : {},
  )
  labels = var.labels

  depends_on = [module.services]
}

module "firestore" {
  source = "./modules/firestore"

  project_id        = var.project_id
  create            = var.firestore.create
  name              = var.firestore.name
  location          = var.firestore.location
  delete_protection = var.firestore.delete_protection
  deletion_policy   = var.firestore.deletion_policy
  ttl_field         = "expireAt"
  ttl_collections   = [for name in local.ttl_collections : "${var.firestore.collection_prefix}${name}"]

  depends_on = [module.services]
}

module "cache" {
  source = "./modules/cache"
  count  = local.uses_cache ? 1 : 0

  project_id     = var.project_id
  region         = var.region
  name           = "${var.name_prefix}-dedup"
  engine         = var.dedup_backend
  network        = var.cache.network
  memory_size_gb = var.cache.memory_size_gb
  tier           = var.cache.tier
  engine_version = var.cache.version
  shard_count    = var.cache.shard_count
  replica_count  = var.cache.replica_count
  labels         = var.labels

  depends_on = [module.services]
}

# --- topics -----------------------------------------------------------------

module "final_topic" {
  source     = "./modules/topic"
  project_id = var.project_id
  name       = "${var.name_prefix}-final"
  labels     = var.labels

  depends_on = [module.services]
}

module "delayed_topic" {
  source = "./modules/topic"
  count  = var.features.delay ? 1 : 0

  project_id = var.project_id
  name       = "${var.name_prefix}-delayed"
  labels     = var.labels

  depends_on = [module.services]
}

# --- deployables ------------------------------------------------------------

module "function" {
  source   = "./modules/function"
  for_each = local.functions

  project_id   = var.project_id
  region       = var.region
  name         = "${var.name_prefix}-${each.key}"
  entry_point  = each.key
  runtime      = var.runtime
  source_code  = local.function_source
  topic_id     = each.key == "delay" ? module.delayed_topic[0].id : module.final_topic.id
  pubsub_agent = local.pubsub_agent
  environment  = merge(local.shared_environment, local.function_environment[each.key])

  secret_environment = each.key == "dedup" && local.uses_cache ? { REDIS_URL = module.cache[0].url_secret_id } : {}
  secret_files       = each.key == "dedup" && local.uses_cache ? { (local.ca_file) = module.cache[0].ca_secret_id } : {}
  vpc_connector      = each.key == "dedup" && local.uses_cache ? var.cache.vpc_connector : null

  # An early message of a stream is nacked until its turn, and each time counts as an attempt.
  subscription = merge(var.subscription, each.key == "fifo" ? { max_delivery_attempts = 100 } : {})
  labels       = var.labels

  depends_on = [module.services]
}

module "delay" {
  source = "./modules/delay"
  count  = var.features.delay ? 1 : 0

  project_id          = var.project_id
  region              = var.region
  name                = "${var.name_prefix}-delay"
  runtime             = var.runtime
  source_code         = { bucket = module.sources.bucket, object = module.sources.objects["appengine"] }
  create_app_engine   = var.app_engine.create
  app_engine_location = local.app_engine_location
  app_engine_service  = var.app_engine.service
  final_topic_id      = module.final_topic.id
  environment         = local.state_environment
  enqueuer            = module.function["delay"].worker.member

  depends_on = [module.services]
}

# --- what the deployables are told ------------------------------------------

locals {
  ca_file = "/etc/pubsub-toolkit/ca.pem"

  function_source = {
    bucket     = module.sources.bucket
    object     = module.sources.objects["functions"]
    builder_id = module.sources.builder_id
  }

  state_environment = {
    FIRESTORE_DATABASE = module.firestore.database_name
    COLLECTION_PREFIX  = var.firestore.collection_prefix
  }

  shared_environment = merge(local.state_environment, { GOOGLE_CLOUD_PROJECT = var.project_id })

  function_environment = {
    dedup = merge(
      { CONSUMER = "${var.name_prefix}-dedup", SINK = local.sinks.dedup, STORE = local.uses_cache ? "redis" : "firestore" },
      local.uses_cache ? { REDIS_CA_FILE = local.ca_file } : {},
    )
    fifo = { CONSUMER = "${var.name_prefix}-fifo", SINK = local.sinks.fifo }
    delay = {
      TASK_QUEUES     = one(module.delay[*].queue_id)
      RELEASE_SERVICE = var.app_engine.service
      FINAL_TOPIC     = module.final_topic.id
    }
  }
}

# --- sinks ------------------------------------------------------------------

locals {
  own_sinks = toset([for name in ["dedup", "fifo"] : name if var.features[name] && var.sinks[name] == null])
  sinks     = { for name in ["dedup", "fifo"] : name => var.sinks[name] != null ? var.sinks[name] : "topic:${var.name_prefix}-${name}-out" }
}

module "sink_topic" {
  source   = "./modules/topic"
  for_each = local.own_sinks

  project_id = var.project_id
  name       = "${var.name_prefix}-${each.key}-out"
  labels     = var.labels

  depends_on = [module.services]
}

resource "google_pubsub_topic_iam_member" "sink_publisher" {
  for_each = local.own_sinks

  project = var.project_id
  topic   = module.sink_topic[each.key].name
  role    = "roles/pubsub.publisher"
  member  = module.function[each.key].worker.member
}

# --- state ------------------------------------------------------------------

locals {
  state_users = merge(
    { for name in local.functions : name => module.function[name].worker.member },
    var.features.delay ? { release = module.delay[0].release.member } : {},
  )
}

resource "google_project_iam_member" "datastore_user" {
  for_each = local.state_users

  project = var.project_id
  role    = "roles/datastore.user"
  member  = each.value

  condition {
    title      = "only-the-toolkit-database"
    expression = "resource.name == \"projects/${var.project_id}/databases/${module.firestore.database_name}\""
  }
}

module "observability" {
  source = "./modules/observability"
  count  = var.features.observability ? 1 : 0

  project_id                = var.project_id
  name_prefix               = var.name_prefix
  notification_channels     = var.notification_channels
  subscriptions             = { for name, function in module.function : name => function.subscription_name }
  dead_letter_subscriptions = { for name, function in module.function : name => function.dead_letter_subscription_name }

  depends_on = [module.services]
}
