variable "project_id" {
  description = "Project."
  type        = string
}

variable "region" {
  description = "Region of the queues; where tasks call App Engine, that of its application."
  type        = string
}

variable "name" {
  description = "Prefix of the names of the queues."
  type        = string
}

variable "queues" {
  description = "How many queues take new tasks (count), how many before them only empty themselves (draining), which generation their names are of, and their limits."
  type = object({
    count                     = number
    draining                  = number
    generation                = number
    max_dispatches_per_second = number
    max_concurrent_dispatches = number
    max_attempts              = number
  })
}

variable "app_engine" {
  description = "The service that releases; null where tasks publish by themselves. `create`: whether to make the application, in `location`."
  type = object({
    create         = bool
    location       = string
    service        = string
    instance_class = string
    max_instances  = number
    runtime        = string
    bucket         = string
    object         = string
  })
  default = null
}

variable "release" {
  description = "Service account that releases: App Engine's, or the one that tasks publish as."
  type = object({
    email  = string
    member = string
  })
}

variable "enqueuer" {
  description = "IAM member of the function that makes the tasks."
  type        = string
}

variable "environment" {
  description = "Settings of the App Engine service; the names of the queues are added."
  type        = map(string)
}
