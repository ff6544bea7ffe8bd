# Each input that cannot work is an error of the plan, of the variable that says what it may be. A run has one wrong member in each of
# several variables, and every one of them must be told of.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id      = "my-project-1"
  source_archives = { functions = "./tests/fixtures/empty.zip", appengine = "./tests/fixtures/empty.zip" }
}

# --- numbers and lengths: one beyond each end, and then the ends --------------

run "one_below_the_least" {
  command = plan

  variables {
    project_id    = "abcde"
    name_prefix   = ""
    subscription  = { ack_deadline_seconds = 9 }
    dedup_backend = ""
    cache         = { memory_size_gb = 0 }
    fifo          = { max_delivery_attempts = 4 }
    queues        = { count = 0 }
    app_engine    = { max_instances = 0 }
    firestore     = { name = "abc" }
    functions     = { timeout_seconds = 0 }
    alerts        = { queue_depth = -1 }
  }

  expect_failures = [
    var.project_id, var.name_prefix, var.subscription, var.dedup_backend, var.cache, var.fifo, var.queues, var.app_engine,
    var.firestore, var.functions, var.alerts,
  ]
}

run "one_above_the_most" {
  command = plan

  variables {
    project_id   = "a123456789012345678901234567890"
    name_prefix  = "abcdefghijklmnop"
    subscription = { ack_deadline_seconds = 601 }
    cache        = { memory_size_gb = 301 }
    fifo         = { max_delivery_attempts = 101 }
    queues       = { count = 100, draining = 1 }
    app_engine   = { max_instances = 1001 }
    firestore    = { name = "a123456789012345678901234567890123456789012345678901234567890123" }
    functions    = { timeout_seconds = 601 }
    labels       = { a123456789012345678901234567890123456789012345678901234567890123 = "" }
  }

  expect_failures = [
    var.project_id, var.name_prefix, var.subscription, var.cache, var.fifo, var.queues, var.app_engine, var.firestore, var.functions,
    var.labels,
  ]
}

run "retention_of_599" {
  command = plan

  variables {
    subscription = { retention_seconds = 599 }
    cache        = { replica_count = -1 }
    queues       = { draining = -1 }
    app_engine   = { service = "a123456789012345678901234567890123456789012345678901234567890123" }
    firestore    = { collection_prefix = "12345678901234567890123456789012345678901234567890123456789012345" }
    functions    = { max_instances = 0 }
    labels       = { team = "1234567890123456789012345678901234567890123456789012345678901234" }
  }

  expect_failures = [var.subscription, var.cache, var.queues, var.app_engine, var.firestore, var.functions, var.labels]
}

run "retention_of_31_days_and_a_second" {
  command = plan

  variables {
    subscription = { retention_seconds = 2678401 }
    cache        = { replica_count = 6 }
    queues       = { generation = 0 }
    functions    = { max_instances = 1001 }
  }

  expect_failures = [var.subscription, var.cache, var.queues, var.functions]
}

run "dead_letters_of_599" {
  command = plan

  variables {
    subscription = { dead_letter_retention_seconds = 599 }
    queues       = { generation = 1.5 }
  }

  expect_failures = [var.subscription, var.queues]
}

run "dead_letters_of_31_days_and_a_second" {
  command = plan

  variables {
    subscription = { dead_letter_retention_seconds = 2678401 }
    queues       = { count = 1.5 }
  }

  expect_failures = [var.subscription, var.queues]
}

run "backoff_below_0" {
  command = plan

  variables {
    subscription = { minimum_backoff_seconds = -1 }
    queues       = { draining = 0.5 }
  }

  expect_failures = [var.subscription, var.queues]
}

run "backoff_of_601" {
  command = plan

  variables {
    subscription = { maximum_backoff_seconds = 601 }
    queues       = { max_dispatches_per_second = 0 }
  }

  expect_failures = [var.subscription, var.queues]
}

run "backoff_upside_down" {
  command = plan

  variables {
    subscription = { minimum_backoff_seconds = 11, maximum_backoff_seconds = 10 }
    queues       = { max_dispatches_per_second = 501 }
  }

  expect_failures = [var.subscription, var.queues]
}

run "attempts_of_4" {
  command = plan

  variables {
    subscription = { max_delivery_attempts = 4 }
    queues       = { max_concurrent_dispatches = 0 }
  }

  expect_failures = [var.subscription, var.queues]
}

run "attempts_of_101" {
  command = plan

  variables {
    subscription = { max_delivery_attempts = 101 }
    queues       = { max_concurrent_dispatches = 5001 }
  }

  expect_failures = [var.subscription, var.queues]
}

run "attempts_of_a_queue_of_0" {
  command = plan

  variables {
    queues = { max_attempts = 0 }
  }

  expect_failures = [var.queues]
}

run "attempts_of_a_queue_of_minus_2" {
  command = plan

  variables {
    queues = { max_attempts = -2 }
  }

  expect_failures = [var.queues]
}

run "the_least" {
  command = plan

  variables {
    project_id  = "abcdef"
    name_prefix = "a"
    subscription = {
      ack_deadline_seconds          = 10
      retention_seconds             = 600
      dead_letter_retention_seconds = 600
      minimum_backoff_seconds       = 1
      maximum_backoff_seconds       = 1
      max_delivery_attempts         = 5
    }
    cache      = { memory_size_gb = 1, replica_count = 0 }
    fifo       = { max_delivery_attempts = 5 }
    queues     = { count = 1, draining = 0, generation = 1, max_dispatches_per_second = 0.1, max_concurrent_dispatches = 1, max_attempts = 1 }
    app_engine = { service = "a", max_instances = 1 }
    firestore  = { name = "abcd" }
    functions  = { timeout_seconds = 1, max_instances = 1 }
    labels     = { a = "" }
    alerts     = { oldest_unacked_seconds = 0, lateness_seconds = 0, queue_depth = 0, failed_requests = 0 }
  }
}

run "the_most" {
  command = plan

  variables {
    project_id  = "a12345678901234567890123456789"
    name_prefix = "abcdefghijklmno"
    subscription = {
      ack_deadline_seconds          = 600
      retention_seconds             = 2678400
      dead_letter_retention_seconds = 2678400
      minimum_backoff_seconds       = 600
      maximum_backoff_seconds       = 600
      max_delivery_attempts         = 100
    }
    cache = { memory_size_gb = 300, replica_count = 5 }
    fifo  = { max_delivery_attempts = 100 }
    queues = {
      count                     = 99
      draining                  = 1
      max_dispatches_per_second = 500
      max_concurrent_dispatches = 5000
    }
    app_engine = { service = "a12345678901234567890123456789012345678901234567890123456789012", max_instances = 1000 }
    firestore = {
      name              = "a12345678901234567890123456789012345678901234567890123456789012"
      collection_prefix = "1234567890123456789012345678901234567890123456789012345678901234"
    }
    functions = { timeout_seconds = 600, max_instances = 1000 }
    labels    = { a12345678901234567890123456789012345678901234567890123456789012 = "123456789012345678901234567890123456789012345678901234567890123" }
  }
}

# --- forms --------------------------------------------------------------------

run "names_in_upper_case_and_names_of_something_else" {
  command = plan

  variables {
    project_id            = "My-project"
    region                = "europe-west1-b"
    name_prefix           = "Ptk"
    labels                = { Team = "orders" }
    topics                = { final = "projects/p/subscriptions/s" }
    sinks                 = { dedup = "http://example.org" }
    dedup_backend         = "memcached"
    cache                 = { tier = "GOLD" }
    fifo                  = { relay_topics = ["projects/p/subscriptions/s"] }
    delay                 = { mode = "cron" }
    queues                = { region = "europe-west1-b" }
    app_engine            = { service = "Release" }
    firestore             = { name = "(default)" }
    source_archives       = { functions = "./dist" }
    runtime               = "nodejs23"
    functions             = { memory = "512" }
    notification_channels = ["1234567890"]
  }

  expect_failures = [
    var.project_id, var.region, var.name_prefix, var.labels, var.topics, var.sinks, var.dedup_backend, var.cache, var.fifo, var.delay,
    var.queues, var.app_engine, var.firestore, var.source_archives, var.runtime, var.functions, var.notification_channels,
  ]
}

run "names_that_end_wrongly_and_places_that_are_no_regions" {
  command = plan

  variables {
    project_id  = "my-project-"
    region      = "eur3"
    name_prefix = "ptk-"
    labels      = { team = "Orders" }
    topics      = { delayed = "ab" }
    sinks       = { fifo = "https://me:secret@example.org" }
    cache       = { connector_cidr = "10.8.0.0/24" }
    delay       = { target_topics = ["ab"] }
    app_engine  = { location = "europe-west1-b" }
    firestore   = { location = "EU" }
    runtime     = "python312"
    functions   = { ingress = "ALLOW_NONE" }
  }

  expect_failures = [
    var.project_id, var.region, var.name_prefix, var.labels, var.topics, var.sinks, var.cache, var.delay, var.app_engine, var.firestore,
    var.runtime, var.functions,
  ]
}

run "names_of_google_and_versions_of_nothing" {
  command = plan

  variables {
    name_prefix = "google"
    sinks       = { dedup = "module:sink.mjs" }
    cache       = { version = "7.2" }
    app_engine  = { instance_class = "F3" }
    firestore   = { collection_prefix = "a/" }
  }

  expect_failures = [var.name_prefix, var.sinks, var.cache, var.app_engine, var.firestore]
}

run "addresses_of_nothing" {
  command = plan

  variables {
    cache = { connector_cidr = "10.8.0/28" }
  }

  expect_failures = [var.cache]
}

run "connector_by_its_short_name" {
  command = plan

  variables {
    cache = { vpc_connector = "shared" }
  }

  expect_failures = [var.cache]
}

run "the_forms_that_there_are" {
  command = plan

  variables {
    labels                = { team = "orders_1-é" }
    sinks                 = { dedup = "module:./sink.mjs", fifo = "topic:projects/p/topics/out" }
    cache                 = { tier = "STANDARD_HA", version = "REDIS_7_2" }
    fifo                  = { relay_topics = ["orders", "projects/p/topics/orders"] }
    delay                 = { target_topics = ["orders", "projects/p/topics/orders"] }
    queues                = { region = "us-central1" }
    app_engine            = { location = "us-central", instance_class = "F4_1G" }
    firestore             = { location = "eur3", collection_prefix = "a_-" }
    functions             = { memory = "1Gi", ingress = "ALLOW_INTERNAL_AND_GCLB" }
    notification_channels = ["projects/p/notificationChannels/1234567890"]
  }
}
