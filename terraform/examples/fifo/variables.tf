variable "project_id" {
  description = "Existing project, with billing."
  type        = string
}

variable "region" {
  description = "Region of everything that has one."
  type        = string
  default     = "europe-west1"
}

variable "sink" {
  description = "topic:NAME, https://… or module:./PATH; null makes a topic."
  type        = string
  default     = null
}
