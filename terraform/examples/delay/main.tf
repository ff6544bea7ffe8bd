# Messages that name when they are due come to the final topic then, and not before.
module "toolkit" {
  source = "../.."

  project_id = var.project_id
  region     = var.region

  features  = { dedup = false, delay = true }
  firestore = { delete_on_destroy = true }

  # An application that exists keeps its default service; one that is made here has none, and ours becomes it.
  app_engine = {
    create   = var.create_app_engine
    location = var.app_engine_location
  }
}
