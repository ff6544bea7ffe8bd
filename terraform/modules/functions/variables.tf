variable "project_id" {
  description = "Project."
  type        = string
}

variable "region" {
  description = "Region of the function and of its schedules."
  type        = string
}

variable "name" {
  description = "Name of the function."
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
  description = "Where the archive lies, who builds it, and the repository that takes the image."
  type = object({
    bucket     = string
    object     = string
    builder_id = string
    repository = string
  })
}

variable "account_email" {
  description = "Service account that the function runs as."
  type        = string
}

variable "environment" {
  description = "Settings of the function."
  type        = map(string)
}

variable "secret_environment" {
  description = "Settings that are secret: where each value lies."
  type        = map(object({ secret = string, version = string }))
  default     = {}
}

variable "secret_files" {
  description = "Files that are secret, by path: where each content lies."
  type        = map(object({ secret = string, version = string }))
  default     = {}
}

variable "vpc_connector" {
  description = "Serverless VPC connector for private addresses, or null."
  type        = string
  default     = null
}

variable "timeout_seconds" {
  description = "How long one request may take."
  type        = number
}

variable "memory" {
  description = "Memory of an instance, as 512M."
  type        = string
}

variable "max_instances" {
  description = "Most instances at a time."
  type        = number
}

variable "ingress" {
  description = "From where the function may be called."
  type        = string
}

variable "schedules" {
  description = "Paths that a schedule posts to every minute, by name."
  type        = map(string)
  default     = {}
}

variable "labels" {
  description = "Labels."
  type        = map(string)
  default     = {}
}
