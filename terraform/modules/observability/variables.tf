variable "project_id" {
  description = "Project."
  type        = string
}

variable "name_prefix" {
  description = "Prefix of display names."
  type        = string
}

variable "notification_channels" {
  description = "Full names of notification channels."
  type        = list(string)
  default     = []
}

variable "thresholds" {
  description = "From where on an alert is raised."
  type = object({
    oldest_unacked_seconds = number
    lateness_seconds       = number
    queue_depth            = number
    failed_requests        = number
  })
}

variable "functions" {
  description = "Names of the functions, by feature."
  type        = map(string)
}

variable "subscriptions" {
  description = "Names of the subscriptions that push, by feature."
  type        = map(string)
}

variable "dead_letter_subscriptions" {
  description = "Names of the subscriptions that keep dead letters, by feature."
  type        = map(string)
}

variable "queues" {
  description = "Names of the queues of Cloud Tasks."
  type        = list(string)
  default     = []
}

variable "app_engine_service" {
  description = "App Engine service that releases, or null."
  type        = string
  default     = null
}

variable "labels" {
  description = "Labels."
  type        = map(string)
  default     = {}
}
