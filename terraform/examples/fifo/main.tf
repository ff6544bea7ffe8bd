# Numbered messages run in the order of their numbers, each once.
module "toolkit" {
  source = "../.."

  project_id = var.project_id
  region     = var.region

  features  = { dedup = false, fifo = true }
  firestore = { delete_on_destroy = true }

  # The function runs a module of yours, or passes each message on to a topic.
  sinks = { fifo = var.sink }

  settings = {
    fifo = {
      FIFO_ON_POISON    = "block"
      FIFO_MAX_ATTEMPTS = "10"
    }
  }
}
