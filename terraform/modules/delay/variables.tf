variable "project_id" {
  description = "Project."
  type        = string
}

variable "region" {
  description = "Region of the queue; it must be that of the App Engine application."
  type        = string
}

variable "name" {
  description = "Name of the queue."
  type        = string
}

variable "runtime" {
  description = "Node.js runtime."
  type        = string
}

variable "source_code" {
  description = "Where the archive of the App Engine service lies."
  type = object({
    bucket = string
    object = string
  })
}

variable "create_app_engine" {
  description = "Create the App Engine application."
  type        = bool
}

variable "app_engine_location" {
  description = "App Engine location."
  type        = string
}

variable "app_engine_service" {
  description = "App Engine service."
  type        = string
}

variable "final_topic_id" {
  description = "Topic that a due message is published to."
  type        = string
}

variable "environment" {
  description = "Settings of the App Engine service."
  type        = map(string)
}

variable "enqueuer" {
  description = "IAM member of the function that makes the tasks."
  type        = string
}
