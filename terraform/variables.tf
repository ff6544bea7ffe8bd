variable "project_id" {
  description = "Existing Google Cloud project that receives every resource."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id must be 6-30 characters: lower-case letters, digits and hyphens, starting with a letter."
  }
}

variable "region" {
  description = "Region of the functions, the task queue, the cache and the source bucket."
  type        = string
  default     = "europe-west1"
}

variable "name_prefix" {
  description = "Prefix of every resource name."
  type        = string
  default     = "ptk"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,14}$", var.name_prefix))
    error_message = "name_prefix must be 1-15 characters, start with a letter and hold only lower-case letters, digits and hyphens."
  }
}

variable "labels" {
  description = "Labels put on every resource that takes them."
  type        = map(string)
  default     = {}
}

variable "features" {
  description = "Which parts to deploy."
  type = object({
    dedup         = optional(bool, true)
    delay         = optional(bool, false)
    fifo          = optional(bool, false)
    observability = optional(bool, true)
  })
  default = {}
}

variable "dedup_backend" {
  description = "Where the deduplication keys live: firestore, redis or valkey."
  type        = string
  default     = "firestore"

  validation {
    condition     = contains(["firestore", "redis", "valkey"], var.dedup_backend)
    error_message = "dedup_backend must be firestore, redis or valkey."
  }
}

variable "subscription" {
  description = "Settings shared by the push subscriptions of the functions."
  type = object({
    ack_deadline_seconds       = optional(number, 60)
    message_retention_duration = optional(string, "604800s")
    minimum_backoff            = optional(string, "10s")
    maximum_backoff            = optional(string, "600s")
    max_delivery_attempts      = optional(number, 10)
  })
  default = {}

  validation {
    condition     = var.subscription.ack_deadline_seconds >= 10 && var.subscription.ack_deadline_seconds <= 600
    error_message = "ack_deadline_seconds must lie between 10 and 600."
  }

  validation {
    condition     = var.subscription.max_delivery_attempts >= 5 && var.subscription.max_delivery_attempts <= 100
    error_message = "max_delivery_attempts must lie between 5 and 100."
  }

  validation {
    condition = alltrue([
      for d in [var.subscription.minimum_backoff, var.subscription.maximum_backoff] :
      try(tonumber(trimsuffix(d, "s")) >= 0 && tonumber(trimsuffix(d, "s")) <= 600, false)
    ])
    error_message = "Backoffs are seconds with an s, between 0s and 600s."
  }
}

variable "firestore" {
  description = "Firestore database. Set create to false to use one that exists."
  type = object({
    create            = optional(bool, true)
    name              = optional(string, "pubsub-toolkit")
    location          = optional(string, "eur3")
    delete_protection = optional(bool, true)
    deletion_policy   = optional(string, "ABANDON")
    collection_prefix = optional(string, "")
  })
  default = {}

  validation {
    condition     = contains(["ABANDON", "DELETE"], var.firestore.deletion_policy)
    error_message = "deletion_policy must be ABANDON or DELETE."
  }
}

variable "cache" {
  description = "Memorystore settings, used when dedup_backend is redis or valkey. A function reaches the cache through a serverless VPC connector of that network."
  type = object({
    network        = optional(string, "default")
    memory_size_gb = optional(number, 1)
    tier           = optional(string, "BASIC")
    vpc_connector  = optional(string)
    version        = optional(string)
    shard_count    = optional(number, 1)
    replica_count  = optional(number, 0)
  })
  default = {}
}

variable "app_engine" {
  description = "App Engine application. location can never be changed once the application exists."
  type = object({
    create   = optional(bool, true)
    location = optional(string)
    service  = optional(string, "release")
  })
  default = {}
}

variable "runtime" {
  description = "Node.js runtime of the functions and of the App Engine service."
  type        = string
  default     = "nodejs24"

  validation {
    condition     = can(regex("^nodejs(2[4-9]|[3-9][0-9])$", var.runtime))
    error_message = "runtime must be nodejs24 or later."
  }
}

variable "source_archives" {
  description = "Zip files that `npm run build` makes."
  type = object({
    functions = optional(string, "../dist/deploy/functions.zip")
    appengine = optional(string, "../dist/deploy/appengine.zip")
  })
  default = {}
}

variable "sinks" {
  description = "Where a handled message goes: topic:NAME, https://... or module:./PATH in the archive. Null makes a topic for it."
  type = object({
    dedup = optional(string)
    fifo  = optional(string)
  })
  default = {}

  validation {
    condition     = alltrue([for sink in values(var.sinks) : sink == null || can(regex("^(topic:.+|https://.+|module:\\./.+)$", sink))])
    error_message = "A sink is topic:NAME, https://... or module:./PATH."
  }
}

variable "notification_channels" {
  description = "Ids of existing Cloud Monitoring notification channels."
  type        = list(string)
  default     = []
}

variable "enable_apis" {
  description = "Whether to enable the APIs that the chosen features need."
  type        = bool
  default     = true
}
