locals {
  is_redis = var.engine == "redis"
  endpoint = local.is_redis ? null : google_memorystore_instance.this[0].endpoints[0].connections[0].psc_auto_connection[0]
  address = (
    local.is_redis ? "${google_redis_instance.this[0].host}:${google_redis_instance.this[0].port}" : "${local.endpoint.ip_address}:${local.endpoint.port}"
  )
  login = local.is_redis ? "default:${google_redis_instance.this[0].auth_string}@" : ""
  ca_pem = join("\n", (
    local.is_redis ? google_redis_instance.this[0].server_ca_certs[*].cert
    : flatten(google_memorystore_instance.this[0].managed_server_ca[*].ca_certs[*].certificates)
  ))
}

# --- network ----------------------------------------------------------------

locals {
  makes_network = var.network == null
  network_name  = local.makes_network ? google_compute_network.this[0].name : var.network
  network_id    = "projects/${var.project_id}/global/networks/${local.network_name}"
  subnetwork    = local.makes_network ? google_compute_subnetwork.this[0].name : coalesce(var.subnetwork, var.network)
}

resource "google_compute_network" "this" {
  count = local.makes_network ? 1 : 0

  project                 = var.project_id
  name                    = var.name
  auto_create_subnetworks = false
}

resource "google_compute_subnetwork" "this" {
  count = local.makes_network ? 1 : 0

  project       = var.project_id
  region        = var.region
  name          = var.name
  network       = google_compute_network.this[0].id
  ip_cidr_range = "10.9.0.0/24"
}

resource "google_vpc_access_connector" "this" {
  count = var.vpc_connector == null ? 1 : 0

  project       = var.project_id
  region        = var.region
  name          = var.name
  network       = local.network_name
  ip_cidr_range = var.connector_cidr
  min_instances = 2
  max_instances = 3
}

# --- instance ---------------------------------------------------------------

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

  # The service's own policy evicts keys with a time to live first, which is every dedup record.
  redis_configs = { maxmemory-policy = "noeviction" }
}

resource "google_network_connectivity_service_connection_policy" "this" {
  count = local.is_redis ? 0 : 1

  project       = var.project_id
  location      = var.region
  name          = var.name
  service_class = "gcp-memorystore"
  network       = local.network_id

  psc_config {
    subnetworks = ["projects/${var.project_id}/regions/${var.region}/subnetworks/${local.subnetwork}"]
  }
}

# Without a password: Valkey knows only tokens of IAM, which no URL can hold. The network is the boundary.
resource "google_memorystore_instance" "this" {
  count = local.is_redis ? 0 : 1

  project                     = var.project_id
  location                    = var.region
  instance_id                 = var.name
  shard_count                 = 1
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

# --- how it is reached ------------------------------------------------------

resource "google_secret_manager_secret" "this" {
  for_each = toset(["url", "ca"])

  project   = var.project_id
  secret_id = "${var.name}-${each.key}"
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
  secret      = google_secret_manager_secret.this["ca"].id
  secret_data = local.ca_pem
}
