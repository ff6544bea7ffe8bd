# What no single variable can tell to be wrong. Each message names the variables to change.

locals {
  settings = jsondecode(file("${path.module}/settings.json"))

  unknown_settings = flatten([
    for who, values in var.settings : [
      for name in keys(values) :
      "settings.${who}.${name}: ${who} has no such setting to change here; there are ${join(", ", keys(local.settings[who]))}."
      if !contains(keys(local.settings[who]), name)
    ]
  ])
  wrong_settings = flatten([
    for who, values in var.settings : [
      for name, value in values : concat(
        [
          for choices in compact([join(", ", try(local.settings[who][name].one_of, []))]) :
          "settings.${who}.${name} is \"${value}\"; it must be one of ${choices}." if !contains(split(", ", choices), value)
        ],
        [
          for range in try([local.settings[who][name].range], []) :
          "settings.${who}.${name} is \"${value}\"; it must be a whole number from ${range[0]} to ${range[1]}."
          if !try(can(regex("^[0-9]{1,15}$", value)) && tonumber(value) >= range[0] && tonumber(value) <= range[1], false)
        ],
        [
          for pattern in try([local.settings[who][name].pattern], []) :
          "settings.${who}.${name} is \"${value}\"; it must match ${pattern}." if !can(regex(pattern, value))
        ],
      )
    ]
  ])
  settings_faults = concat(local.unknown_settings, local.wrong_settings)

  ack_deadline_ms   = var.subscription.ack_deadline_seconds * 1000
  short_leases      = [for name in ["dedup", "fifo"] : name if try(tonumber(var.settings[name].DEDUP_LEASE_MS) < local.ack_deadline_ms, false)]
  early             = lookup(var.settings.fifo, "FIFO_EARLY", "park")
  on_poison         = lookup(var.settings.fifo, "FIFO_ON_POISON", "block")
  fifo_lease_ms     = try(tonumber(var.settings.fifo.FIFO_LEASE_MS), 60000)
  release_attempts  = try(tonumber(var.settings.release.DELAY_MAX_ATTEMPTS), 0)
  missing_archives  = [for component, path in local.needed_archives : "source_archives.${component}: there is no file ${path}" if !fileexists(path)]
  inbox_needs_store = lookup(var.settings.dedup, "DEDUP_MODE", "lease") == "inbox" && local.uses_cache
}

resource "terraform_data" "rules" {
  lifecycle {
    precondition {
      condition     = length(local.missing_archives) == 0
      error_message = "${join("; ", local.missing_archives)}. Run npm run build, which makes it in dist/deploy, or name another .zip file in source_archives."
    }

    precondition {
      condition     = length(local.settings_faults) == 0
      error_message = join("\n", concat(["settings holds what the deployables do not take:"], local.settings_faults))
    }

    precondition {
      condition     = var.functions.timeout_seconds <= var.subscription.ack_deadline_seconds
      error_message = "functions.timeout_seconds is ${var.functions.timeout_seconds} and subscription.ack_deadline_seconds ${var.subscription.ack_deadline_seconds}: a message would come again while it is handled. Set ack_deadline_seconds to ${var.functions.timeout_seconds} or more (600 at most), or timeout_seconds to less."
    }

    precondition {
      condition     = length(local.short_leases) == 0
      error_message = "DEDUP_LEASE_MS in settings.${join(" and settings.", local.short_leases)} must be ${local.ack_deadline_ms} or more, since Pub/Sub waits for an answer for subscription.ack_deadline_seconds = ${var.subscription.ack_deadline_seconds}. Leave it out to have it follow."
    }

    precondition {
      condition     = !var.features.fifo || local.early == "park" || contains([0, 100], var.fifo.max_delivery_attempts)
      error_message = "fifo.max_delivery_attempts is ${var.fifo.max_delivery_attempts} and FIFO_EARLY nack: an early message would be a dead letter before its turn. Set it to 100, or to 0 for no end, or leave settings.fifo.FIFO_EARLY at park."
    }

    precondition {
      condition     = local.on_poison != "divert" || lookup(var.settings.fifo, "FIFO_LANE_TOPIC", "") != ""
      error_message = "settings.fifo.FIFO_ON_POISON is divert: set settings.fifo.FIFO_LANE_TOPIC to the existing topic that takes what is diverted."
    }

    precondition {
      condition     = !local.inbox_needs_store
      error_message = "settings.dedup.DEDUP_MODE is inbox, whose effect and record commit in one transaction: set dedup_backend to firestore."
    }

    precondition {
      condition     = !local.uses_cache || local.cache_version == var.cache.version
      error_message = "cache.version is ${coalesce(var.cache.version, "not set")}, which is no version of dedup_backend = ${var.dedup_backend}: set one that begins with ${upper(var.dedup_backend)}_, or null."
    }

    precondition {
      condition     = !local.uses_app_engine || var.app_engine.create || var.app_engine.location != null
      error_message = "app_engine.create is false: set app_engine.location to where the application is (gcloud app describe --format='value(locationId)'), since the queues must be there."
    }

    precondition {
      condition     = !local.uses_app_engine || local.queue_region == local.app_engine_region
      error_message = "queues.region is ${local.queue_region} and App Engine in ${local.app_engine_region}: a queue whose tasks call App Engine must be in its region. Set queues.region to ${local.app_engine_region}, or leave it out."
    }

    precondition {
      condition     = !local.uses_app_engine || !var.app_engine.create || local.app_engine_service == "default"
      error_message = "app_engine.service is ${local.app_engine_service} in an application that is made here, whose first service must be default. Leave app_engine.service out, or set app_engine.create = false if the application exists."
    }

    precondition {
      condition     = !local.uses_app_engine || var.queues.max_attempts == -1 || (local.release_attempts >= 1 && local.release_attempts <= var.queues.max_attempts)
      error_message = "queues.max_attempts is ${var.queues.max_attempts}, after which a queue drops the task and with it the message: set settings.release.DELAY_MAX_ATTEMPTS from 1 to ${var.queues.max_attempts}, so that it is a dead letter before, or queues.max_attempts to -1."
    }

    precondition {
      condition     = local.uses_app_engine || lookup(var.settings.delay, "DELAY_LEDGER", "ids") == "ids"
      error_message = "settings.delay.DELAY_LEDGER is all, and delay.mode handler-less, whose tasks ask no ledger: set delay.mode to handler, or leave DELAY_LEDGER out."
    }
  }
}

# Not wrong, but seldom meant.

check "fifo_head" {
  assert {
    condition     = !var.features.fifo || var.fifo.max_delivery_attempts == 0 || var.fifo.max_delivery_attempts * var.subscription.minimum_backoff_seconds * 1000 > local.fifo_lease_ms
    error_message = "fifo.max_delivery_attempts × subscription.minimum_backoff_seconds is less than FIFO_LEASE_MS (${local.fifo_lease_ms} ms): a message at the head of its stream may become a dead letter, which is a gap, while a lease runs out. Raise one of the two, or set fifo.max_delivery_attempts to 0."
  }
}

check "retry_pace" {
  assert {
    condition     = var.subscription.minimum_backoff_seconds >= 1
    error_message = "subscription.minimum_backoff_seconds is ${var.subscription.minimum_backoff_seconds}: a message that is given back comes again at once. 1 or more is advised."
  }
}

check "handler_less_attempts" {
  assert {
    condition     = !var.features.delay || var.delay.mode == "handler" || var.queues.max_attempts == -1
    error_message = "queues.max_attempts is ${var.queues.max_attempts} and delay.mode handler-less: a message whose task was tried so often is gone. Set queues.max_attempts to -1, or delay.mode to handler."
  }
}
