variable "project_id" {
  description = "Existing project, with billing."
  type        = string
}

variable "region" {
  description = "Region of everything that has one."
  type        = string
  default     = "europe-west1"
}

variable "engine" {
  description = "redis or valkey."
  type        = string
  default     = "redis"
}
