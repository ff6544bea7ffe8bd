mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id      = "my-project-1"
  source_archives = { functions = "./tests/fixtures/empty.zip", appengine = "./tests/fixtures/empty.zip" }
}

run "the_default_is_dedup_on_firestore" {
  command = plan

  assert {
    condition     = join(",", keys(module.function)) == "dedup" && length(module.delay) == 0 && length(module.cache) == 0
    error_message = "functions: ${join(", ", keys(module.function))}"
  }

  assert {
    condition     = output.environment.dedup.STORE == "firestore" && output.firestore_database == "pubsub-toolkit"
    error_message = "environment: ${jsonencode(output.environment)}"
  }

  assert {
    condition     = output.topics == { final = "projects/my-project-1/topics/ptk-final", dedup_out = "projects/my-project-1/topics/ptk-dedup-out" }
    error_message = "topics: ${jsonencode(output.topics)}"
  }
}

run "every_feature" {
  command = apply

  variables {
    features = { dedup = true, fifo = true, delay = true }
  }

  assert {
    condition     = join(",", keys(output.subscriptions)) == "dedup,delay,fifo" && join(",", keys(output.dead_letter_subscriptions)) == "dedup,delay,fifo"
    error_message = "subscriptions: ${jsonencode(output.subscriptions)}"
  }

  assert {
    condition     = join(",", keys(output.service_accounts)) == "dedup,delay,fifo,release"
    error_message = "accounts: ${join(", ", keys(output.service_accounts))}"
  }

  assert {
    condition     = output.app_engine_service == "default" && output.environment.delay.RELEASE_SERVICE == "default"
    error_message = "service: ${jsonencode(output.app_engine_service)}"
  }
}

run "nothing_but_what_is_asked_for" {
  command = plan

  variables {
    features = { dedup = false, observability = false }
  }

  assert {
    condition     = length(module.function) == 0 && length(module.firestore) == 0 && length(module.topic) == 0 && length(module.observability) == 0
    error_message = "topics: ${join(", ", keys(module.topic))}"
  }
}

run "keys_in_redis_need_no_database" {
  command = apply

  variables {
    dedup_backend = "redis"
    cache         = { version = "REDIS_7_2" }
  }

  assert {
    condition     = length(module.firestore) == 0 && output.environment.dedup.STORE == "redis" && !contains(keys(output.environment.dedup), "FIRESTORE_DATABASE")
    error_message = "environment: ${jsonencode(output.environment.dedup)}"
  }
}

run "keys_in_two_tiers_need_both" {
  command = apply

  variables {
    dedup_backend = "valkey"
    cache         = { two_tier = true, network = "shared", vpc_connector = "projects/my-project-1/locations/europe-west1/connectors/shared" }
  }

  assert {
    condition     = length(module.firestore) == 1 && output.environment.dedup.STORE == "two-tier" && output.cache_address == "10.0.0.3:6379"
    error_message = "environment: ${jsonencode(output.environment.dedup)}"
  }
}

run "given_topics_are_not_made" {
  command = plan

  variables {
    features = { dedup = true, fifo = true }
    topics   = { final = "orders", fifo = "projects/other-project/topics/numbered" }
    sinks    = { dedup = "topic:numbered-later", fifo = "https://example.org/orders" }
  }

  assert {
    condition     = length(module.topic) == 0
    error_message = "made: ${join(", ", keys(module.topic))}"
  }

  assert {
    condition = toset(keys(google_pubsub_topic_iam_member.publisher)) == toset([
      "dedup projects/my-project-1/topics/numbered-later",
      "fifo projects/other-project/topics/numbered",
    ])
    error_message = "publishers: ${join(", ", keys(google_pubsub_topic_iam_member.publisher))}"
  }

  assert {
    condition     = google_pubsub_topic_iam_member.publisher["fifo projects/other-project/topics/numbered"].project == "other-project"
    error_message = "the grant is in another project than the topic"
  }

  assert {
    condition     = output.environment.fifo.SINK == "https://example.org/orders"
    error_message = "SINK: ${output.environment.fifo.SINK}"
  }
}

run "tasks_that_publish_by_themselves_need_no_app_engine" {
  command = plan

  variables {
    features = { dedup = false, delay = true }
    delay    = { mode = "handler-less", target_topics = ["late-orders"] }
    queues   = { region = "us-east1" }
  }

  assert {
    condition     = output.app_engine_service == null && output.environment.delay.DELAY_MODE == "handler-less" && !contains(keys(output.environment.delay), "RELEASE_SERVICE")
    error_message = "environment: ${jsonencode(keys(output.environment.delay))}"
  }

  assert {
    condition     = output.environment.delay.TARGET_TOPICS == "projects/my-project-1/topics/late-orders"
    error_message = "TARGET_TOPICS: ${output.environment.delay.TARGET_TOPICS}"
  }

  assert {
    condition     = contains(keys(google_pubsub_topic_iam_member.publisher), "release projects/my-project-1/topics/late-orders")
    error_message = "publishers: ${join(", ", keys(google_pubsub_topic_iam_member.publisher))}"
  }

  assert {
    condition     = toset(keys(google_project_iam_member.datastore_user)) == toset(["delay"])
    error_message = "an account that only publishes may read the database"
  }
}

run "an_application_that_exists_keeps_its_default_service" {
  command = plan

  variables {
    features   = { delay = true }
    app_engine = { create = false, location = "us-central" }
  }

  assert {
    condition     = output.app_engine_service == "release" && local.queue_region == "us-central1"
    error_message = "service ${output.app_engine_service}, queues in ${local.queue_region}"
  }
}

run "regions_that_app_engine_calls_otherwise" {
  command = plan

  variables {
    features = { delay = true }
    region   = "us-central1"
  }

  assert {
    condition     = local.app_engine_location == "us-central" && local.queue_region == "us-central1"
    error_message = "App Engine in ${local.app_engine_location}, queues in ${local.queue_region}"
  }
}
