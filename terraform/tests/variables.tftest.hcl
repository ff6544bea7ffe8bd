# Each input that cannot work is an error of the plan, of the variable or of the rule that says what it may be.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id      = "my-project-1"
  source_archives = { functions = "./tests/fixtures/empty.zip", appengine = "./tests/fixtures/empty.zip" }
}

run "project_id" {
  command = plan

  variables {
    project_id = "ab"
  }

  expect_failures = [var.project_id]
}

run "region_is_a_zone" {
  command = plan

  variables {
    region = "europe-west1-b"
  }

  expect_failures = [var.region]
}

run "region_is_a_multi_region" {
  command = plan

  variables {
    region = "eur3"
  }

  expect_failures = [var.region]
}

run "prefix_of_16" {
  command = plan

  variables {
    name_prefix = "abcdefghijklmnop"
  }

  expect_failures = [var.name_prefix]
}

run "prefix_in_upper_case" {
  command = plan

  variables {
    name_prefix = "Ptk"
  }

  expect_failures = [var.name_prefix]
}

run "prefix_ends_with_a_hyphen" {
  command = plan

  variables {
    name_prefix = "ptk-"
  }

  expect_failures = [var.name_prefix]
}

run "topic_of_a_subscription" {
  command = plan

  variables {
    topics = { final = "projects/p/subscriptions/s" }
  }

  expect_failures = [var.topics]
}

run "sink_without_tls" {
  command = plan

  variables {
    sinks = { dedup = "http://example.org" }
  }

  expect_failures = [var.sinks]
}

run "sink_with_a_password" {
  command = plan

  variables {
    sinks = { fifo = "https://me:secret@example.org" }
  }

  expect_failures = [var.sinks]
}

run "ack_deadline_of_9" {
  command = plan

  variables {
    subscription = { ack_deadline_seconds = 9 }
  }

  expect_failures = [var.subscription]
}

run "ack_deadline_of_601" {
  command = plan

  variables {
    subscription = { ack_deadline_seconds = 601 }
  }

  expect_failures = [var.subscription]
}

run "retention_of_599" {
  command = plan

  variables {
    subscription = { retention_seconds = 599 }
  }

  expect_failures = [var.subscription]
}

run "retention_of_32_days" {
  command = plan

  variables {
    subscription = { retention_seconds = 2764800 }
  }

  expect_failures = [var.subscription]
}

run "dead_letters_of_32_days" {
  command = plan

  variables {
    subscription = { dead_letter_retention_seconds = 2764800 }
  }

  expect_failures = [var.subscription]
}

run "backoff_of_601" {
  command = plan

  variables {
    subscription = { maximum_backoff_seconds = 601 }
  }

  expect_failures = [var.subscription]
}

run "backoff_upside_down" {
  command = plan

  variables {
    subscription = { minimum_backoff_seconds = 20, maximum_backoff_seconds = 10 }
  }

  expect_failures = [var.subscription]
}

run "attempts_of_4" {
  command = plan

  variables {
    subscription = { max_delivery_attempts = 4 }
  }

  expect_failures = [var.subscription]
}

run "attempts_of_101" {
  command = plan

  variables {
    subscription = { max_delivery_attempts = 101 }
  }

  expect_failures = [var.subscription]
}

run "unknown_backend" {
  command = plan

  variables {
    dedup_backend = "memcached"
  }

  expect_failures = [var.dedup_backend]
}

run "unknown_tier" {
  command = plan

  variables {
    cache = { tier = "GOLD" }
  }

  expect_failures = [var.cache]
}

run "cache_of_0" {
  command = plan

  variables {
    cache = { memory_size_gb = 0 }
  }

  expect_failures = [var.cache]
}

run "replicas_of_6" {
  command = plan

  variables {
    cache = { replica_count = 6 }
  }

  expect_failures = [var.cache]
}

run "connector_of_24" {
  command = plan

  variables {
    cache = { connector_cidr = "10.8.0.0/24" }
  }

  expect_failures = [var.cache]
}

run "version_of_nothing" {
  command = plan

  variables {
    cache = { version = "7.2" }
  }

  expect_failures = [var.cache]
}

run "fifo_attempts_of_4" {
  command = plan

  variables {
    fifo = { max_delivery_attempts = 4 }
  }

  expect_failures = [var.fifo]
}

run "unknown_delay_mode" {
  command = plan

  variables {
    delay = { mode = "cron" }
  }

  expect_failures = [var.delay]
}

run "no_queue" {
  command = plan

  variables {
    queues = { count = 0 }
  }

  expect_failures = [var.queues]
}

run "queues_of_101" {
  command = plan

  variables {
    queues = { count = 100, draining = 1 }
  }

  expect_failures = [var.queues]
}

run "generation_of_0" {
  command = plan

  variables {
    queues = { generation = 0 }
  }

  expect_failures = [var.queues]
}

run "rate_of_501" {
  command = plan

  variables {
    queues = { max_dispatches_per_second = 501 }
  }

  expect_failures = [var.queues]
}

run "concurrency_of_5001" {
  command = plan

  variables {
    queues = { max_concurrent_dispatches = 5001 }
  }

  expect_failures = [var.queues]
}

run "attempts_of_a_queue_of_0" {
  command = plan

  variables {
    queues = { max_attempts = 0 }
  }

  expect_failures = [var.queues]
}

run "service_in_upper_case" {
  command = plan

  variables {
    app_engine = { service = "Release" }
  }

  expect_failures = [var.app_engine]
}

run "unknown_instance_class" {
  command = plan

  variables {
    app_engine = { instance_class = "F3" }
  }

  expect_failures = [var.app_engine]
}

run "no_instance" {
  command = plan

  variables {
    app_engine = { max_instances = 0 }
  }

  expect_failures = [var.app_engine]
}

run "database_that_exists" {
  command = plan

  variables {
    firestore = { name = "(default)" }
  }

  expect_failures = [var.firestore]
}

run "database_of_3_letters" {
  command = plan

  variables {
    firestore = { name = "abc" }
  }

  expect_failures = [var.firestore]
}

run "collection_prefix_with_a_slash" {
  command = plan

  variables {
    firestore = { collection_prefix = "a/" }
  }

  expect_failures = [var.firestore]
}

run "archive_that_is_a_folder" {
  command = plan

  variables {
    source_archives = { functions = "./dist" }
  }

  expect_failures = [var.source_archives]
}

run "unsupported_runtime" {
  command = plan

  variables {
    runtime = "nodejs22"
  }

  expect_failures = [var.runtime]
}

run "runtime_of_another_language" {
  command = plan

  variables {
    runtime = "python312"
  }

  expect_failures = [var.runtime]
}

run "timeout_of_601" {
  command = plan

  variables {
    functions = { timeout_seconds = 601 }
  }

  expect_failures = [var.functions]
}

run "memory_without_a_unit" {
  command = plan

  variables {
    functions = { memory = "512" }
  }

  expect_failures = [var.functions]
}

run "no_function_instance" {
  command = plan

  variables {
    functions = { max_instances = 0 }
  }

  expect_failures = [var.functions]
}

run "unknown_ingress" {
  command = plan

  variables {
    functions = { ingress = "ALLOW_NONE" }
  }

  expect_failures = [var.functions]
}

run "threshold_below_0" {
  command = plan

  variables {
    alerts = { queue_depth = -1 }
  }

  expect_failures = [var.alerts]
}
