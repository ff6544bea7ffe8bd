variable "project_id" {
  description = "Existing project, with billing."
  type        = string
}

variable "region" {
  description = "Region of everything that has one."
  type        = string
  default     = "europe-west1"
}

variable "create_app_engine" {
  description = "Whether the project has no App Engine application yet."
  type        = bool
  default     = true
}

variable "app_engine_location" {
  description = "Where the application is; null: in the region. It can never be moved."
  type        = string
  default     = null
}
