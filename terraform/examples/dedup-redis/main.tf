# The same with keys in Memorystore: faster, and an instance that is paid for by the hour.
module "toolkit" {
  source = "../.."

  project_id    = var.project_id
  region        = var.region
  dedup_backend = var.engine

  cache = {
    tier           = "STANDARD_HA"
    memory_size_gb = 1
    replica_count  = 1
  }

  # Where Redis lost a key in a failover, or is down, messages wait rather than run twice.
  settings = {
    dedup = { DEDUP_ON_OUTAGE = "closed" }
  }
}
