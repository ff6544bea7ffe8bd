locals {
  is_redis   = var.engine == "redis"
  valkey     = one(google_memorystore_instance.this[*])
  redis      = one(google_redis_instance.this[*])
  endpoint   = try(local.valkey.endpoints[0].connections[0].psc_auto_connection[0], null)
  address    = local.is_redis ? "${local.redis.host}:${local.redis.port}" : try("${local.endpoint.ip_address}:${local.endpoint.port}", "unknown")
  login      = local.is_redis ? "default:${local.redis.auth_string}@" : ""
  network_id = "projects/${var.project_id}/global/networks/${var.network}"
}

resource "google_redis_instance" "this" {
  count = local.is_redis ? 1 : 0

  project                 = var.project_id
  region                  = var.region
  name                    = var.name
  tier                    = var.tier
  memory_size_gb          = var.memory_size_gb
  redis_version           = coalesce(var.engine_version, "REDIS_7_2")
  authorized_network      = local.network_id
  auth_enabled            = true
  transit_encryption_mode = "SERVER_AUTHENTICATION"
  labels                  = var.labels

  # The default policy evicts keys with a time to live first, which is every dedup record.
  redis_configs = { maxmemory-policy = "noeviction" }
}

resource "google_network_connectivity_service_connection_policy" "this" {
  count = local.is_redis ? 0 : 1

  project       = var.project_id
  location      = var.region
  name          = "${var.name}-policy"
  service_class = "gcp-memorystore"
  network       = local.network_id

  psc_config {
    subnetworks = ["projects/${var.project_id}/regions/${var.region}/subnetworks/${var.network}"]
  }
}

resource "google_memorystore_instance" "this" {
  count = local.is_redis ? 0 : 1

  project                     = var.project_id
  location                    = var.region
  instance_id                 = var.name
  shard_count                 = var.shard_count
  replica_count               = var.replica_count
  mode                        = "CLUSTER_DISABLED"
  node_type                   = "SHARED_CORE_NANO"
  engine_version              = coalesce(var.engine_version, "VALKEY_8_0")
  authorization_mode          = "AUTH_DISABLED"
  transit_encryption_mode     = "SERVER_AUTHENTICATION"
  deletion_protection_enabled = false
  labels                      = var.labels
  engine_configs              = { maxmemory-policy = "noeviction" }

  desired_auto_created_endpoints {
    network    = local.network_id
    project_id = var.project_id
  }

  depends_on = [google_network_connectivity_service_connection_policy.this]
}

resource "google_secret_manager_secret" "this" {
  for_each = toset(["url", "ca"])

  project   = var.project_id
  secret_id = "${var.name}-redis-${each.key}"
  labels    = var.labels

  replication {
    auto {}
  }
}

resource "google_secret_manager_secret_version" "url" {
  secret      = google_secret_manager_secret.this["url"].id
  secret_data = "rediss://${local.login}${local.address}"
}

resource "google_secret_manager_secret_version" "ca" {
  secret = google_secret_manager_secret.this["ca"].id
  secret_data = join("\n", local.is_redis ? local.redis.server_ca_certs[*].cert : flatten(
    local.valkey.managed_server_ca[*].ca_certs[*].certificates
  ))
}
