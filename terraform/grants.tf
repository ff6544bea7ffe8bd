# What the deployables may do. Each grant adds one member, on the one resource where there is such a thing.

locals {
  app_engine_release = local.uses_app_engine ? ["release"] : []
  delay_topics       = compact(concat([local.topics.final], local.target_topics))
  relay_topics       = [for topic in var.fifo.relay_topics : startswith(topic, "projects/") ? topic : "projects/${var.project_id}/topics/${topic}"]
  lane_topic         = lookup(var.settings.fifo, "FIFO_LANE_TOPIC", null)
  lane               = local.lane_topic == null ? null : startswith(local.lane_topic, "projects/") ? local.lane_topic : "projects/${var.project_id}/topics/${local.lane_topic}"

  publishes = {
    dedup   = [local.topics.dedup_out]
    fifo    = concat([local.topics.fifo_out, local.topics.fifo, local.lane], local.relay_topics)
    delay   = local.delay_topics
    release = local.delay_topics
  }
  publishers = merge([
    for who, account in google_service_account.deployable :
    { for topic in toset(compact(local.publishes[who])) : "${who} ${topic}" => { topic = topic, member = account.member } }
  ]...)

  checked = setunion(
    var.features.delay ? ["delay"] : [],
    [for name in local.functions : name if lookup(var.settings[name], "SUBSCRIPTION", "") != ""],
  )
}

resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = local.publishers

  project = split("/", each.value.topic)[1]
  topic   = split("/", each.value.topic)[3]
  role    = "roles/pubsub.publisher"
  member  = each.value.member

  depends_on = [module.topic]
}

# The delay function asks which topic its subscription is of; the others read it where they are to check it.
resource "google_pubsub_subscription_iam_member" "viewer" {
  for_each = local.checked

  project      = var.project_id
  subscription = module.subscription[each.key].name
  role         = "roles/pubsub.viewer"
  member       = google_service_account.deployable[each.key].member
}

# Firestore has nothing finer than the project, so a condition names the one database.
resource "google_project_iam_member" "datastore_user" {
  for_each = setsubtract(
    setunion(local.functions, local.app_engine_release),
    local.uses_cache && !var.cache.two_tier ? ["dedup"] : [],
  )

  project = var.project_id
  role    = "roles/datastore.user"
  member  = google_service_account.deployable[each.key].member

  condition {
    title      = "only-the-toolkit-database"
    expression = "resource.name == \"projects/${var.project_id}/databases/${local.database}\""
  }
}

resource "google_secret_manager_secret_iam_member" "reader" {
  for_each = local.uses_cache ? module.cache[0].secrets : {}

  project   = var.project_id
  secret_id = each.value.secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.deployable["dedup"].member
}
