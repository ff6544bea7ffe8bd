variable "project_id" {
  description = "Existing project, with billing."
  type        = string
}

variable "region" {
  description = "Region of everything that has one."
  type        = string
  default     = "europe-west1"
}
