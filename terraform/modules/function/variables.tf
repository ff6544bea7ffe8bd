variable "project_id" {
  description = "Project."
  type        = string
}

variable "region" {
  description = "Region of the function."
  type        = string
}

variable "name" {
  description = "Name of the function and of its subscription."
  type        = string
}

variable "entry_point" {
  description = "Which function of the archive this is: dedup, delay or fifo."
  type        = string
}

variable "runtime" {
  description = "Node.js runtime."
  type        = string
}

variable "source_code" {
  description = "Where the archive lies and who builds it."
  type = object({
    bucket     = string
    object     = string
    builder_id = string
  })
}

variable "topic_id" {
  description = "Topic whose messages are pushed to the function."
  type        = string
}

variable "pubsub_agent" {
  description = "IAM member of the project's Pub/Sub service agent."
  type        = string
}

variable "environment" {
  description = "Settings of the function."
  type        = map(string)
}

variable "secret_environment" {
  description = "Settings that are secret: name to secret id."
  type        = map(string)
  default     = {}
}

variable "secret_files" {
  description = "Files that are secret: path to secret id."
  type        = map(string)
  default     = {}
}

variable "vpc_connector" {
  description = "Serverless VPC connector for private addresses, or null."
  type        = string
  default     = null
}

variable "subscription" {
  description = "Settings of the push subscription."
  type = object({
    ack_deadline_seconds       = number
    message_retention_duration = string
    minimum_backoff            = string
    maximum_backoff            = string
    max_delivery_attempts      = number
  })
}

variable "labels" {
  description = "Labels."
  type        = map(string)
  default     = {}
}
