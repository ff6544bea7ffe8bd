# --- where ------------------------------------------------------------------

variable "project_id" {
  description = "Existing project, with billing, that receives every resource."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id must have 6-30 lower-case letters, digits and hyphens, start with a letter and not end with a hyphen."
  }
}

variable "region" {
  description = "Region of everything that has one; the queues follow App Engine's."
  type        = string
  default     = "europe-west1"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region must be the name of a region, as europe-west1 or us-central1, and not of a zone or a multi-region."
  }
}

variable "name_prefix" {
  description = "What every name begins with. Another prefix is another deployment: names of existing resources cannot be changed."
  type        = string
  default     = "ptk"

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$", var.name_prefix)) && !startswith(var.name_prefix, "goog")
    error_message = "name_prefix must have 1-15 lower-case letters, digits and hyphens, start with a letter (not with goog) and not end with a hyphen: the names of service accounts made of it have 30 at most."
  }
}

variable "labels" {
  description = "Labels of every resource that takes them."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, value in var.labels : can(regex("^[\\p{Ll}\\p{Lo}][\\p{Ll}\\p{Lo}\\p{N}_-]{0,62}$", name)) && can(regex("^[\\p{Ll}\\p{Lo}\\p{N}_-]{0,63}$", value))])
    error_message = "labels must have names of 1-63 and values of 0-63 lower-case letters, digits, underscores and hyphens; a name starts with a letter."
  }
}

variable "enable_apis" {
  description = "Whether to enable the APIs that the chosen features need. None is disabled by a destroy."
  type        = bool
  default     = true
}

# --- what -------------------------------------------------------------------

variable "features" {
  description = "Which parts to deploy. The default is the cheap one: dedup, with its keys in Firestore, and alerts."
  type = object({
    dedup         = optional(bool, true)
    delay         = optional(bool, false)
    fifo          = optional(bool, false)
    observability = optional(bool, true)
  })
  default = {}
}

variable "topics" {
  description = "Existing topics, short or full, to work on: `final` for dedup and fifo, `fifo` for fifo alone, `delayed` for delay. Null: one is made; for `fifo`: the final one."
  type = object({
    final   = optional(string)
    fifo    = optional(string)
    delayed = optional(string)
  })
  default = {}

  validation {
    condition     = alltrue([for topic in values(var.topics) : topic == null || can(regex("^(projects/[^/]+/topics/)?[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", topic))])
    error_message = "Each of topics must be NAME or projects/PROJECT/topics/NAME."
  }
}

variable "sinks" {
  description = "Where a handled message goes: `topic:NAME` (short or full), `https://…` or `module:./PATH` in the archive. Null makes a topic for it; subscribe to that before you publish."
  type = object({
    dedup = optional(string)
    fifo  = optional(string)
  })
  default = {}

  validation {
    condition = alltrue([
      for sink in values(var.sinks) :
      sink == null || can(regex("^(topic:(projects/[^/]+/topics/)?[A-Za-z][A-Za-z0-9._~+%-]{2,254}|https://[^@]+|module:\\./.+)$", sink))
    ])
    error_message = "Each of sinks must be topic:NAME, topic:projects/PROJECT/topics/NAME, https://… without user and password, or module:./PATH."
  }
}

variable "subscription" {
  description = "The subscriptions that push to the functions. After `max_delivery_attempts` a message is a dead letter; see `fifo` for its own."
  type = object({
    ack_deadline_seconds          = optional(number, 60)
    retention_seconds             = optional(number, 604800)
    minimum_backoff_seconds       = optional(number, 10)
    maximum_backoff_seconds       = optional(number, 600)
    max_delivery_attempts         = optional(number, 10)
    dead_letter_retention_seconds = optional(number, 2678400)
  })
  default = {}

  validation {
    condition     = var.subscription.ack_deadline_seconds >= 10 && var.subscription.ack_deadline_seconds <= 600
    error_message = "subscription.ack_deadline_seconds must lie between 10 and 600."
  }

  validation {
    condition = alltrue([
      for seconds in [var.subscription.retention_seconds, var.subscription.dead_letter_retention_seconds] : seconds >= 600 && seconds <= 2678400
    ])
    error_message = "subscription.retention_seconds and dead_letter_retention_seconds must lie between 600 (10 minutes) and 2678400 (31 days)."
  }

  validation {
    condition     = var.subscription.minimum_backoff_seconds >= 0 && var.subscription.maximum_backoff_seconds <= 600 && var.subscription.minimum_backoff_seconds <= var.subscription.maximum_backoff_seconds
    error_message = "subscription.minimum_backoff_seconds and maximum_backoff_seconds must lie between 0 and 600, the first not above the second."
  }

  validation {
    condition     = var.subscription.max_delivery_attempts >= 5 && var.subscription.max_delivery_attempts <= 100
    error_message = "subscription.max_delivery_attempts must lie between 5 and 100."
  }
}

# --- dedup ------------------------------------------------------------------

variable "dedup_backend" {
  description = "Where the dedup function keeps its keys: `firestore`, or a Memorystore that is made, `redis` or `valkey`."
  type        = string
  default     = "firestore"

  validation {
    condition     = contains(["firestore", "redis", "valkey"], var.dedup_backend)
    error_message = "dedup_backend must be firestore, redis or valkey."
  }
}

variable "cache" {
  description = "The Memorystore and its network. `two_tier`: Firestore decides, with the cache in front. `network`, `subnetwork`, `vpc_connector`: existing ones; a network and a connector are made where they are null."
  type = object({
    two_tier       = optional(bool, false)
    network        = optional(string)
    subnetwork     = optional(string)
    vpc_connector  = optional(string)
    connector_cidr = optional(string, "10.8.0.0/28")
    memory_size_gb = optional(number, 1)
    tier           = optional(string, "BASIC")
    version        = optional(string)
    replica_count  = optional(number, 0)
  })
  default = {}

  validation {
    condition     = contains(["BASIC", "STANDARD_HA"], var.cache.tier)
    error_message = "cache.tier must be BASIC or STANDARD_HA."
  }

  validation {
    condition     = var.cache.memory_size_gb >= 1 && var.cache.memory_size_gb <= 300
    error_message = "cache.memory_size_gb must lie between 1 and 300."
  }

  validation {
    condition     = var.cache.replica_count >= 0 && var.cache.replica_count <= 5
    error_message = "cache.replica_count must lie between 0 and 5."
  }

  validation {
    condition     = can(cidrhost(var.cache.connector_cidr, 0)) && endswith(var.cache.connector_cidr, "/28")
    error_message = "cache.connector_cidr must be a range of addresses of the form 10.8.0.0/28."
  }

  validation {
    condition     = var.cache.version == null || can(regex("^(REDIS|VALKEY)_[0-9]+_[0-9X]+$", var.cache.version))
    error_message = "cache.version must be one as REDIS_7_2 or VALKEY_8_0."
  }

  validation {
    condition     = var.cache.vpc_connector == null || can(regex("^projects/[^/]+/locations/[^/]+/connectors/[^/]+$", var.cache.vpc_connector))
    error_message = "cache.vpc_connector must be projects/PROJECT/locations/REGION/connectors/NAME."
  }
}

# --- fifo -------------------------------------------------------------------

variable "fifo" {
  description = "`max_delivery_attempts` of its subscription, 0 for no end: with FIFO_EARLY=nack an early message uses them up, so 0 or 100 only. `relay_topics`: existing topics beside its own that outboxes number messages for."
  type = object({
    max_delivery_attempts = optional(number, 100)
    relay_topics          = optional(set(string), [])
  })
  default = {}

  validation {
    condition     = var.fifo.max_delivery_attempts == 0 || (var.fifo.max_delivery_attempts >= 5 && var.fifo.max_delivery_attempts <= 100)
    error_message = "fifo.max_delivery_attempts must be 0 or lie between 5 and 100."
  }

  validation {
    condition     = alltrue([for topic in var.fifo.relay_topics : can(regex("^(projects/[^/]+/topics/)?[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", topic))])
    error_message = "Each of fifo.relay_topics must be NAME or projects/PROJECT/topics/NAME."
  }
}

# --- delay ------------------------------------------------------------------

variable "delay" {
  description = "`mode`: tasks call the release on App Engine (`handler`), or publish by themselves (`handler-less`, without App Engine). `target_topics`: existing topics that a message may name in ptk-target."
  type = object({
    mode          = optional(string, "handler")
    target_topics = optional(set(string), [])
  })
  default = {}

  validation {
    condition     = contains(["handler", "handler-less"], var.delay.mode)
    error_message = "delay.mode must be handler or handler-less."
  }

  validation {
    condition     = alltrue([for topic in var.delay.target_topics : can(regex("^(projects/[^/]+/topics/)?[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", topic))])
    error_message = "Each of delay.target_topics must be NAME or projects/PROJECT/topics/NAME."
  }
}

variable "queues" {
  description = "Queues of delayed messages. Each dispatches 500 tasks a second at most, so `count` by the rate. Of the `draining` ones behind them the release still takes calls: move queues there before they go. A new `generation` gives new names, which a queue needs that was deleted within days. `region` only without App Engine. `max_attempts` -1: no end."
  type = object({
    count                     = optional(number, 1)
    draining                  = optional(number, 0)
    generation                = optional(number, 1)
    region                    = optional(string)
    max_dispatches_per_second = optional(number, 500)
    max_concurrent_dispatches = optional(number, 1000)
    max_attempts              = optional(number, -1)
  })
  default = {}

  validation {
    condition     = var.queues.count >= 1 && var.queues.draining >= 0 && var.queues.count + var.queues.draining <= 100
    error_message = "queues.count must be 1 or more, draining 0 or more, and both together 100 at most."
  }

  validation {
    condition     = alltrue([for number in [var.queues.count, var.queues.draining] : floor(number) == number])
    error_message = "queues.count and draining must be whole numbers."
  }

  validation {
    condition     = var.queues.region == null || can(regex("^[a-z]+-[a-z]+[0-9]+$", var.queues.region))
    error_message = "queues.region must be the name of a region, as europe-west1; leave it out to have it follow App Engine, or region where there is none."
  }

  validation {
    condition     = var.queues.generation >= 1 && floor(var.queues.generation) == var.queues.generation
    error_message = "queues.generation must be a whole number from 1."
  }

  validation {
    condition     = var.queues.max_dispatches_per_second > 0 && var.queues.max_dispatches_per_second <= 500
    error_message = "queues.max_dispatches_per_second must lie above 0 and be 500 at most; a higher rate takes a higher queues.count."
  }

  validation {
    condition     = var.queues.max_concurrent_dispatches >= 1 && var.queues.max_concurrent_dispatches <= 5000
    error_message = "queues.max_concurrent_dispatches must lie between 1 and 5000."
  }

  validation {
    condition     = var.queues.max_attempts == -1 || var.queues.max_attempts >= 1
    error_message = "queues.max_attempts must be -1 (no end) or 1 and more."
  }
}

variable "app_engine" {
  description = "Where due messages are released. `create` false: the application exists, in `location`; it can never be moved or deleted. `service`: null for `default` in an application that is made here, since its first must be that, and for `release` in one that exists."
  type = object({
    create         = optional(bool, true)
    location       = optional(string)
    service        = optional(string)
    instance_class = optional(string, "F1")
    max_instances  = optional(number, 10)
  })
  default = {}

  validation {
    condition     = var.app_engine.location == null || can(regex("^[a-z]+-[a-z]+[0-9]*$", var.app_engine.location))
    error_message = "app_engine.location must be the name of a region, as europe-west1 or, as App Engine itself calls it, europe-west."
  }

  validation {
    condition     = var.app_engine.service == null || can(regex("^[a-z][a-z0-9-]{0,62}$", var.app_engine.service))
    error_message = "app_engine.service must have 1-63 lower-case letters, digits and hyphens, and start with a letter."
  }

  validation {
    condition     = contains(["F1", "F2", "F4", "F4_1G"], var.app_engine.instance_class)
    error_message = "app_engine.instance_class must be F1, F2, F4 or F4_1G."
  }

  validation {
    condition     = var.app_engine.max_instances >= 1 && var.app_engine.max_instances <= 1000
    error_message = "app_engine.max_instances must lie between 1 and 1000."
  }
}

# --- state ------------------------------------------------------------------

variable "firestore" {
  description = "The database. `create` false: use the existing one of that `name`, in Native mode. `location`: null for the region. `delete_on_destroy`: else a destroy leaves it, with its data, and the next apply needs create = false or an import."
  type = object({
    create            = optional(bool, true)
    name              = optional(string, "pubsub-toolkit")
    location          = optional(string)
    delete_on_destroy = optional(bool, false)
    collection_prefix = optional(string, "")
  })
  default = {}

  validation {
    condition     = var.firestore.name == "(default)" || can(regex("^[a-z][a-z0-9-]{2,61}[a-z0-9]$", var.firestore.name))
    error_message = "firestore.name must be (default), or have 4-63 lower-case letters, digits and hyphens and start with a letter."
  }

  validation {
    condition     = !(var.firestore.create && var.firestore.name == "(default)")
    error_message = "firestore.name is (default), which exists or is made by App Engine: set firestore.create = false to use it, or another firestore.name."
  }

  validation {
    condition     = var.firestore.location == null || can(regex("^[a-z]+(-[a-z]+)?[0-9]+$", var.firestore.location))
    error_message = "firestore.location must be the name of a region, as europe-west1, or of a multi-region, as eur3 or nam5."
  }

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{0,64}$", var.firestore.collection_prefix))
    error_message = "firestore.collection_prefix must have 0-64 letters, digits, underscores and hyphens."
  }
}

# --- deployables ------------------------------------------------------------

variable "source_archives" {
  description = "Zip files that `npm run build` makes; null for those in dist/deploy beside this folder."
  type = object({
    functions = optional(string)
    appengine = optional(string)
  })
  default = {}

  validation {
    condition     = alltrue([for path in values(var.source_archives) : path == null || can(regex("\\.zip$", path))])
    error_message = "Each of source_archives must be the path of a .zip file."
  }
}

variable "runtime" {
  description = "Node.js of the functions and of App Engine; the archives are built for 24."
  type        = string
  default     = "nodejs24"

  validation {
    condition     = can(regex("^nodejs(2[4-9]|[3-9][0-9])$", var.runtime))
    error_message = "runtime must be nodejs24 or a later one."
  }
}

variable "functions" {
  description = "What each function gets. A request may take no longer than subscription.ack_deadline_seconds, or it comes again while it runs."
  type = object({
    timeout_seconds = optional(number, 60)
    memory          = optional(string, "512M")
    max_instances   = optional(number, 20)
    ingress         = optional(string, "ALLOW_INTERNAL_ONLY")
  })
  default = {}

  validation {
    condition     = var.functions.timeout_seconds >= 1 && var.functions.timeout_seconds <= 600
    error_message = "functions.timeout_seconds must lie between 1 and 600, the longest ack deadline."
  }

  validation {
    condition     = can(regex("^[0-9]+(M|Mi|G|Gi)$", var.functions.memory))
    error_message = "functions.memory must be a size, as 512M or 1G."
  }

  validation {
    condition     = var.functions.max_instances >= 1 && var.functions.max_instances <= 1000
    error_message = "functions.max_instances must lie between 1 and 1000."
  }

  validation {
    condition     = contains(["ALLOW_INTERNAL_ONLY", "ALLOW_INTERNAL_AND_GCLB", "ALLOW_ALL"], var.functions.ingress)
    error_message = "functions.ingress must be ALLOW_INTERNAL_ONLY, ALLOW_INTERNAL_AND_GCLB or ALLOW_ALL."
  }
}

variable "settings" {
  description = "Further environment variables of each deployable (`release`: App Engine). Names and values are checked against settings.json, which is made of the code; what other variables here decide is not among them."
  type = object({
    dedup   = optional(map(string), {})
    fifo    = optional(map(string), {})
    delay   = optional(map(string), {})
    release = optional(map(string), {})
  })
  default = {}
}

# --- observability ----------------------------------------------------------

variable "notification_channels" {
  description = "Full names of existing notification channels of Cloud Monitoring, whom alerts tell."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for channel in var.notification_channels : can(regex("^projects/[^/]+/notificationChannels/[^/]+$", channel))])
    error_message = "Each of notification_channels must be projects/PROJECT/notificationChannels/ID."
  }
}

variable "alerts" {
  description = "From where on an alert is raised: age of the oldest message that nobody acked, lateness of tasks (99th percentile), tasks of one queue, and failed requests in five minutes."
  type = object({
    oldest_unacked_seconds = optional(number, 600)
    lateness_seconds       = optional(number, 60)
    queue_depth            = optional(number, 1000000)
    failed_requests        = optional(number, 20)
  })
  default = {}

  validation {
    condition     = alltrue([for threshold in values(var.alerts) : threshold >= 0])
    error_message = "Each of alerts must be 0 or more."
  }
}
