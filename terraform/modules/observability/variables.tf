variable "project_id" {
  description = "Project."
  type        = string
}

variable "name_prefix" {
  description = "Prefix of display names."
  type        = string
}

variable "notification_channels" {
  description = "Notification channel ids."
  type        = list(string)
  default     = []
}

variable "subscriptions" {
  description = "Subscription names by feature."
  type        = map(string)
}

variable "dead_letter_subscriptions" {
  description = "Dead-letter subscription names by feature."
  type        = map(string)
}
