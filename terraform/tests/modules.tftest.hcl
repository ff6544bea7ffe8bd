mock_provider "google" {
  source = "./tests/mocks"
}

run "a_subscription_keeps_its_dead_letters" {
  command = apply

  module {
    source = "./modules/subscription"
  }

  variables {
    project_id                    = "my-project-1"
    name                          = "orders"
    topic_id                      = "projects/my-project-1/topics/orders"
    pubsub_agent                  = "serviceAccount:service-1@gcp-sa-pubsub.iam.gserviceaccount.com"
    ack_deadline_seconds          = 60
    retention_seconds             = 604800
    minimum_backoff_seconds       = 10
    maximum_backoff_seconds       = 600
    max_delivery_attempts         = 10
    dead_letter_retention_seconds = 2678400
    push                          = { endpoint = "https://example.org", account = "caller@my-project-1.iam.gserviceaccount.com" }
  }

  assert {
    condition     = google_pubsub_subscription.dead_letter.message_retention_duration == "2678400s" && google_pubsub_subscription.dead_letter.expiration_policy[0].ttl == ""
    error_message = "the subscription on the dead letters ends"
  }

  assert {
    condition     = google_pubsub_subscription.this.dead_letter_policy[0].max_delivery_attempts == 10 && google_pubsub_subscription.this.expiration_policy[0].ttl == ""
    error_message = "no dead-letter policy"
  }

  assert {
    condition     = !google_pubsub_subscription.this.enable_message_ordering
    error_message = "message ordering is on"
  }

  assert {
    condition     = google_pubsub_topic_iam_member.dead_letter_agent.member == var.pubsub_agent && google_pubsub_subscription_iam_member.agent.member == var.pubsub_agent
    error_message = "Pub/Sub may not forward"
  }
}

run "without_attempts_there_is_no_policy_but_a_topic" {
  command = plan

  module {
    source = "./modules/subscription"
  }

  variables {
    project_id                    = "my-project-1"
    name                          = "orders"
    topic_id                      = "projects/my-project-1/topics/orders"
    pubsub_agent                  = "serviceAccount:service-1@gcp-sa-pubsub.iam.gserviceaccount.com"
    ack_deadline_seconds          = 60
    retention_seconds             = 604800
    minimum_backoff_seconds       = 10
    maximum_backoff_seconds       = 600
    max_delivery_attempts         = 0
    dead_letter_retention_seconds = 2678400
  }

  assert {
    condition     = length(google_pubsub_subscription.this.dead_letter_policy) == 0 && length(google_pubsub_subscription.this.push_config) == 0
    error_message = "there is a policy"
  }

  assert {
    condition     = module.dead_letter.topic.name == "orders-dead-letter"
    error_message = "topic: ${module.dead_letter.topic.name}"
  }
}

run "topic_name_too_short" {
  command = plan

  module {
    source = "./modules/topic"
  }

  variables {
    project_id = "my-project-1"
    name       = "ab"
  }

  expect_failures = [var.name]
}

run "topic_name_of_google" {
  command = plan

  module {
    source = "./modules/topic"
  }

  variables {
    project_id = "my-project-1"
    name       = "google-orders"
  }

  expect_failures = [var.name]
}
