# A topic, a function that runs each of its messages once, and a topic behind it. Keys are documents.
module "toolkit" {
  source = "../.."

  project_id = var.project_id
  region     = var.region

  # To try it out: a destroy takes the keys along.
  firestore = { delete_on_destroy = true }
}
