mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id      = "my-project-1"
  source_archives = { functions = "./tests/fixtures/empty.zip", appengine = "./tests/fixtures/empty.zip" }
  features        = { dedup = true, fifo = true, delay = true }
}

run "keys_outlive_dead_letters_by_a_day" {
  command = plan

  # 7 days, 31 days and one.
  assert {
    condition     = output.environment.dedup.DEDUP_TTL_SECONDS == "3369600" && output.environment.fifo.DEDUP_TTL_SECONDS == "3369600"
    error_message = "DEDUP_TTL_SECONDS: ${output.environment.dedup.DEDUP_TTL_SECONDS}"
  }
}

run "keys_follow_the_retention" {
  command = plan

  variables {
    subscription = { retention_seconds = 600, dead_letter_retention_seconds = 86400 }
  }

  assert {
    condition     = output.environment.dedup.DEDUP_TTL_SECONDS == "173400"
    error_message = "DEDUP_TTL_SECONDS: ${output.environment.dedup.DEDUP_TTL_SECONDS}"
  }
}

run "leases_follow_the_ack_deadline" {
  command = plan

  variables {
    subscription = { ack_deadline_seconds = 61 }
  }

  assert {
    condition     = output.environment.dedup.DEDUP_LEASE_MS == "61000"
    error_message = "DEDUP_LEASE_MS: ${output.environment.dedup.DEDUP_LEASE_MS}"
  }
}

run "settings_of_the_user_are_passed_on" {
  command = plan

  variables {
    settings = {
      dedup   = { DEDUP_LEASE_MS = "60000", DEDUP_KEY = "payload:$.id" }
      fifo    = { FIFO_ON_POISON = "divert", FIFO_LANE_TOPIC = "lane", FIFO_HOLD_MS = "30000", SUBSCRIPTION = "ptk-fifo", DEDUP_MODE = "inbox" }
      delay   = { DELAY_LEDGER = "all" }
      release = { DELAY_MAX_ATTEMPTS = "20" }
    }
    queues = { max_attempts = 20 }
  }

  assert {
    condition     = output.environment.dedup.DEDUP_KEY == "payload:$.id" && output.environment.delay.DELAY_LEDGER == "all" && local.release_environment.DELAY_MAX_ATTEMPTS == "20"
    error_message = "environment: ${jsonencode(keys(output.environment.dedup))}"
  }

  assert {
    condition     = contains(keys(google_pubsub_topic_iam_member.publisher), "fifo projects/my-project-1/topics/lane")
    error_message = "the fifo function may not publish to its lane"
  }

  assert {
    condition     = toset(keys(google_pubsub_subscription_iam_member.viewer)) == toset(["delay", "fifo"])
    error_message = "viewers: ${join(", ", keys(google_pubsub_subscription_iam_member.viewer))}"
  }
}

run "a_queue_that_empties_itself_takes_no_new_tasks" {
  command = apply

  variables {
    queues = { count = 2, draining = 1, generation = 7 }
  }

  assert {
    condition     = length(output.task_queues) == 3 && length(split(",", output.environment.delay.TASK_QUEUES)) == 2
    error_message = "TASK_QUEUES: ${output.environment.delay.TASK_QUEUES}"
  }

  assert {
    condition     = join(",", module.delay[0].queue_names) == "ptk-delay-7-0,ptk-delay-7-1,ptk-delay-7-2"
    error_message = "queues: ${join(", ", module.delay[0].queue_names)}"
  }
}

run "dedup_alone_makes_no_composite_index" {
  command = plan

  variables {
    features = {}
  }

  assert {
    condition     = join(",", local.collections) == "ptk-dedup"
    error_message = "collections: ${join(", ", local.collections)}"
  }
}

run "a_handler_that_sends_needs_the_outbox" {
  command = plan

  variables {
    features = {}
    settings = { dedup = { DEDUP_MODE = "inbox" } }
  }

  assert {
    condition     = contains(local.collections, "ptk-outbox")
    error_message = "collections: ${join(", ", local.collections)}"
  }
}
