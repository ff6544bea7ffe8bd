# What variables together cannot mean is an error of the plan, or a warning where it may be meant.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id      = "my-project-1"
  source_archives = { functions = "./tests/fixtures/empty.zip", appengine = "./tests/fixtures/empty.zip" }
}

run "missing_archive" {
  command = plan

  variables {
    source_archives = { functions = "./nowhere/functions.zip" }
  }

  expect_failures = [terraform_data.rules]
}

run "missing_archive_of_app_engine" {
  command = plan

  variables {
    features        = { delay = true }
    source_archives = { functions = "./tests/fixtures/empty.zip", appengine = "./nowhere/appengine.zip" }
  }

  expect_failures = [terraform_data.rules]
}

run "unknown_setting" {
  command = plan

  variables {
    settings = { dedup = { DEDUP_LEASES_MS = "60000" } }
  }

  expect_failures = [terraform_data.rules]
}

run "setting_of_another_deployable" {
  command = plan

  variables {
    settings = { dedup = { FIFO_EARLY = "park" } }
  }

  expect_failures = [terraform_data.rules]
}

run "setting_that_follows_from_others" {
  command = plan

  variables {
    settings = { dedup = { DEDUP_TTL_SECONDS = "60" } }
  }

  expect_failures = [terraform_data.rules]
}

run "setting_out_of_range" {
  command = plan

  variables {
    settings = { fifo = { FIFO_HOLD_MS = "30001" } }
  }

  expect_failures = [terraform_data.rules]
}

run "setting_that_is_no_number" {
  command = plan

  variables {
    settings = { fifo = { FIFO_HOLD_MS = "1s" } }
  }

  expect_failures = [terraform_data.rules]
}

run "setting_that_is_none_of_the_choices" {
  command = plan

  variables {
    settings = { dedup = { DEDUP_MODE = "once" } }
  }

  expect_failures = [terraform_data.rules]
}

run "setting_of_another_form" {
  command = plan

  variables {
    settings = { fifo = { FIFO_START_AT = "0" } }
  }

  expect_failures = [terraform_data.rules]
}

run "function_that_outlasts_the_ack_deadline" {
  command = plan

  variables {
    functions = { timeout_seconds = 61 }
  }

  expect_failures = [terraform_data.rules]
}

run "lease_below_the_ack_deadline" {
  command = plan

  variables {
    settings = { dedup = { DEDUP_LEASE_MS = "59999" } }
  }

  expect_failures = [terraform_data.rules]
}

run "lease_of_fifo_below_the_ack_deadline" {
  command = plan

  variables {
    features = { fifo = true }
    settings = { fifo = { DEDUP_LEASE_MS = "59999" } }
  }

  expect_failures = [terraform_data.rules]
}

run "early_messages_that_use_up_their_attempts" {
  command = plan

  variables {
    features = { fifo = true }
    fifo     = { max_delivery_attempts = 99 }
    settings = { fifo = { FIFO_EARLY = "nack" } }
  }

  expect_failures = [terraform_data.rules]
}

run "lane_without_a_topic" {
  command = plan

  variables {
    features = { fifo = true }
    settings = { fifo = { FIFO_ON_POISON = "divert" } }
  }

  expect_failures = [terraform_data.rules]
}

run "inbox_on_redis" {
  command = plan

  variables {
    dedup_backend = "redis"
    settings      = { dedup = { DEDUP_MODE = "inbox" } }
  }

  expect_failures = [terraform_data.rules]
}

run "version_of_the_other_cache" {
  command = plan

  variables {
    dedup_backend = "valkey"
    cache         = { version = "REDIS_7_2" }
  }

  expect_failures = [terraform_data.rules]
}

run "application_that_is_somewhere" {
  command = plan

  variables {
    features   = { delay = true }
    app_engine = { create = false }
  }

  expect_failures = [terraform_data.rules]
}

run "queues_beside_app_engine" {
  command = plan

  variables {
    features = { delay = true }
    queues   = { region = "europe-west3" }
  }

  expect_failures = [terraform_data.rules]
}

run "queues_beside_an_application_that_exists_in_another_region" {
  command = plan

  variables {
    features   = { delay = true }
    queues     = { region = "europe-west1" }
    app_engine = { create = false, location = "us-central" }
  }

  expect_failures = [terraform_data.rules]
}

run "first_service_that_is_not_default" {
  command = plan

  variables {
    features   = { delay = true }
    app_engine = { service = "release" }
  }

  expect_failures = [terraform_data.rules]
}

run "queue_that_drops_messages" {
  command = plan

  variables {
    features = { delay = true }
    queues   = { max_attempts = 20 }
  }

  expect_failures = [terraform_data.rules]
}

run "queue_that_drops_messages_before_the_release_gives_up" {
  command = plan

  variables {
    features = { delay = true }
    queues   = { max_attempts = 20 }
    settings = { release = { DELAY_MAX_ATTEMPTS = "21" } }
  }

  expect_failures = [terraform_data.rules]
}

run "ledger_that_nobody_asks" {
  command = plan

  variables {
    features = { delay = true }
    delay    = { mode = "handler-less" }
    settings = { delay = { DELAY_LEDGER = "all" } }
  }

  expect_failures = [terraform_data.rules]
}

run "head_of_a_stream_that_may_go" {
  command = plan

  variables {
    features = { fifo = true }
    fifo     = { max_delivery_attempts = 6 }
  }

  expect_failures = [check.fifo_head]
}

run "retries_without_a_pause" {
  command = plan

  variables {
    subscription = { minimum_backoff_seconds = 0, maximum_backoff_seconds = 0 }
  }

  expect_failures = [check.retry_pace]
}

run "tasks_that_end_unseen" {
  command = plan

  variables {
    features = { delay = true }
    delay    = { mode = "handler-less" }
    queues   = { max_attempts = 20 }
  }

  expect_failures = [check.handler_less_attempts]
}

run "early_messages_with_100_attempts" {
  command = plan

  variables {
    features = { fifo = true }
    fifo     = { max_delivery_attempts = 100 }
    settings = { fifo = { FIFO_EARLY = "nack" } }
  }
}

run "early_messages_without_end" {
  command = plan

  variables {
    features = { fifo = true }
    fifo     = { max_delivery_attempts = 0 }
    settings = { fifo = { FIFO_EARLY = "nack" } }
  }
}

run "early_messages_that_park_take_any" {
  command = plan

  variables {
    features = { fifo = true }
    fifo     = { max_delivery_attempts = 7 }
  }
}

run "queues_beside_app_engine_by_its_other_name" {
  command = plan

  variables {
    features   = { delay = true }
    queues     = { region = "us-central1" }
    app_engine = { create = false, location = "us-central" }
  }
}
