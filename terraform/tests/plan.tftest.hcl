mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
  # Real providers check the form of an IAM member even under a mock.
  mock_resource "google_service_account" {
    defaults = {
      email  = "mock@my-project-1.iam.gserviceaccount.com"
      member = "serviceAccount:mock@my-project-1.iam.gserviceaccount.com"
      id     = "projects/my-project-1/serviceAccounts/mock@my-project-1.iam.gserviceaccount.com"
    }
  }
}

variables {
  project_id = "my-project-1"
  source_archives = {
    functions = "./tests/fixtures/empty.zip"
    appengine = "./tests/fixtures/empty.zip"
  }
}

run "defaults_deploy_only_dedup_on_firestore" {
  command = plan
  assert {
    condition     = join(",", keys(module.function)) == "dedup" && length(module.delay) == 0 && length(module.cache) == 0
    error_message = "unexpected parts"
  }
}

run "everything" {
  command = apply
  variables {
    features = { dedup = true, delay = true, fifo = true }
  }
  assert {
    condition     = length(output.topics) == 4 && length(output.subscriptions) == 3
    error_message = "topics: ${jsonencode(output.topics)}"
  }
}

run "redis" {
  command = plan
  variables { dedup_backend = "redis" }
  assert {
    condition     = length(module.cache) == 1
    error_message = "no cache"
  }
}

run "valkey" {
  command = plan
  variables { dedup_backend = "valkey" }
}

run "bad_backend" {
  command = plan
  variables { dedup_backend = "memcached" }
  expect_failures = [var.dedup_backend]
}

run "bad_ack" {
  command = plan
  variables { subscription = { ack_deadline_seconds = 5 } }
  expect_failures = [var.subscription]
}

run "bad_backoff" {
  command = plan
  variables { subscription = { maximum_backoff = "700s" } }
  expect_failures = [var.subscription]
}

run "old_runtime" {
  command = plan
  variables { runtime = "nodejs22" }
  expect_failures = [var.runtime]
}

run "bad_sink" {
  command = plan
  variables { sinks = { dedup = "http://example.org" } }
  expect_failures = [var.sinks]
}
