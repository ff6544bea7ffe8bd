variable "project_id" {
  description = "Project."
  type        = string
}

variable "region" {
  description = "Region of the bucket and of the images."
  type        = string
}

variable "name_prefix" {
  description = "Prefix of the names."
  type        = string
}

variable "archives" {
  description = "Paths of the zip files that the build made, by component."
  type        = map(string)
}

variable "labels" {
  description = "Labels."
  type        = map(string)
  default     = {}
}
