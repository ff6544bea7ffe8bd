variable "project_id" {
  description = "Project of the subscription and of its dead letters."
  type        = string
}

variable "name" {
  description = "Name of the subscription; its dead letters have the same with -dead-letter."
  type        = string
}

variable "topic_id" {
  description = "Full id of the topic."
  type        = string
}

variable "pubsub_agent" {
  description = "IAM member of the project's Pub/Sub service agent."
  type        = string
}

variable "push" {
  description = "Whom the subscription calls, and as which service account; null makes it one that is pulled."
  type = object({
    endpoint = string
    account  = string
  })
  default = null
}

variable "ack_deadline_seconds" {
  description = "How long a delivery may take before it comes again."
  type        = number
}

variable "retention_seconds" {
  description = "How long a message that nobody acked is kept."
  type        = number
}

variable "minimum_backoff_seconds" {
  description = "Shortest wait before a delivery that was given back."
  type        = number
}

variable "maximum_backoff_seconds" {
  description = "Longest wait before a delivery that was given back."
  type        = number
}

variable "max_delivery_attempts" {
  description = "After so many deliveries Pub/Sub forwards the message to the dead letters; 0: never, and the topic takes only what a deployable sets aside."
  type        = number
}

variable "dead_letter_publishers" {
  description = "IAM members, by who they are, that set aside what can never be handled."
  type        = map(string)
  default     = {}
}

variable "dead_letter_retention_seconds" {
  description = "How long dead letters are kept."
  type        = number
}

variable "labels" {
  description = "Labels."
  type        = map(string)
  default     = {}
}
