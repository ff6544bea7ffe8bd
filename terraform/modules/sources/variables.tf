variable "project_id" {
  description = "Project."
  type        = string
}

variable "region" {
  description = "Region of the bucket."
  type        = string
}

variable "name_prefix" {
  description = "Prefix of the bucket's and the builder's name."
  type        = string
}

variable "archives" {
  description = "Paths of the zip files that the build made, by component."
  type        = map(string)

  validation {
    condition     = alltrue([for path in values(var.archives) : can(regex("\\.zip$", path))])
    error_message = "Every archive must be the path of a zip file: run the build first."
  }
}

variable "labels" {
  description = "Labels."
  type        = map(string)
  default     = {}
}
