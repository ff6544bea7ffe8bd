import type { Planted } from './trees.ts';

const functionModule = 'modules/functions/main.tf';
const subscriptionModule = 'modules/subscription/main.tf';

export const plantedFaults: readonly Planted[] = [
  {
    kind: 'a file that is no HCL',
    tree: 'terraform',
    edits: [{ file: 'outputs.tf', from: 'output "topics" {', to: 'output "topics" {{' }],
    tier: 'A',
    says: /^outputs\.tf: /,
  },
  {
    kind: 'an argument that there is not',
    tree: 'terraform',
    edits: [{ file: 'modules/topic/main.tf', from: '  labels  ', to: '  label   ' }],
    tier: 'A',
    says: /google_pubsub_topic\.this: label is no argument/,
  },
  {
    kind: 'a required argument is missing',
    tree: 'terraform',
    edits: [{ file: subscriptionModule, from: '  topic                      = var.topic_id\n', to: '' }],
    tier: 'A',
    says: /google_pubsub_subscription\.this: topic is required/,
  },
  {
    kind: 'a reference to nothing',
    tree: 'terraform',
    edits: [{ file: subscriptionModule, from: '= module.dead_letter.topic.id', to: '= module.dead_letters.topic.id' }],
    tier: 'A',
    says: /there is no module\.dead_letters/,
  },
  {
    kind: 'a value that the service sets',
    tree: 'terraform',
    edits: [
      {
        file: functionModule,
        from: `  account_id   = "\${var.name}-invoker"`,
        to: `  email        = "me@example.com"\n  account_id   = "\${var.name}-invoker"`,
      },
    ],
    tier: 'A',
    says: /email is set by the service/,
  },
  {
    kind: 'a number out of its range',
    tree: 'terraform',
    edits: [{ file: 'modules/delay/main.tf', from: '= var.queues.max_dispatches_per_second', to: '= 501' }],
    tier: 'A',
    says: /max_dispatches_per_second is 501; it must lie between 0 and 500/,
  },
  {
    kind: 'an environment name that the code does not know',
    tree: 'terraform',
    edits: [{ file: 'environment.tf', from: 'DEAD_LETTER_TOPIC    =', to: 'DEADLETTER_TOPIC     =' }],
    tier: 'A',
    says: /no deployable reads DEADLETTER_TOPIC/,
  },
  {
    kind: 'everybody may invoke',
    tree: 'terraform',
    edits: [{ file: functionModule, from: '  member   = google_service_account.invoker.member', to: '  member   = "allUsers"' }],
    tier: 'A',
    says: /allUsers/,
  },
  {
    kind: 'an editor of the project',
    tree: 'terraform',
    edits: [{ file: 'grants.tf', from: '"roles/datastore.user"', to: '"roles/editor"' }],
    tier: 'A',
    says: /roles\/editor/,
  },
  {
    kind: 'a provider without an end to its versions',
    tree: 'terraform',
    edits: [{ file: 'versions.tf', from: '">= 7.0.0, < 9.0.0"', to: '">= 7.0.0"' }],
    tier: 'A',
    says: /the version of google has no end/,
  },
  {
    kind: 'what only a later Terraform takes',
    tree: 'terraform',
    edits: [
      {
        file: 'variables.tf',
        from: 'var.functions.timeout_seconds <= 600',
        to: 'var.functions.timeout_seconds <= var.subscription.ack_deadline_seconds',
      },
    ],
    tier: 'A',
    says: /a validation of var\.functions reads another variable/,
  },
  {
    kind: 'a limit that no test shows',
    tree: 'terraform',
    edits: [{ file: 'tests/rules.tftest.hcl', from: 'expect_failures = [check.retry_pace]', to: '' }],
    tier: 'A',
    says: /check\.retry_pace has 1 conditions; the tests expect 0 failures/,
  },
  {
    kind: 'payloads that stay for ever',
    tree: 'terraform',
    edits: [
      {
        file: 'firestore.indexes.json',
        from: '"ptk-payloads", "fieldPath": "expireAt", "ttl": true',
        to: '"ptk-payloads", "fieldPath": "expireAt", "ttl": false',
      },
    ],
    tier: 'A',
    says: /no field of ptk-payloads has a TTL/,
  },
  {
    kind: 'a TTL that is not deployed',
    tree: 'terraform',
    edits: [
      {
        file: 'modules/firestore/main.tf',
        from: 'for_each = each.value.ttl ?',
        to: 'for_each = each.value.ttl && each.value.collectionGroup != "ptk-payloads" ?',
      },
    ],
    tier: 'B',
    says: /no google_firestore_field with ttl_config for ptk-payloads/,
  },
  {
    kind: 'tasks of an account that may not publish to a target',
    tree: 'handlerLess',
    edits: [{ file: 'grants.tf', from: 'release = local.delay_topics', to: 'release = [local.topics.final]' }],
    tier: 'B',
    says: /ptk-release@\S+, as which its tasks publish, has no roles\/pubsub\.publisher on \S+\/reminders/,
  },
  {
    kind: 'tasks of an account that their maker may not use',
    tree: 'handlerLess',
    edits: [{ file: 'modules/delay/main.tf', from: '"roles/iam.serviceAccountUser"', to: '"roles/iam.serviceAccountViewer"' }],
    tier: 'B',
    says: /ptk-delay@\S+ has no roles\/iam\.serviceAccountUser on ptk-release@/,
  },
  {
    kind: 'no grant on the dead-letter topic',
    tree: 'terraform',
    edits: [
      {
        file: subscriptionModule,
        from: '  topic   = module.dead_letter.topic.name\n  role    = "roles/pubsub.publisher"\n  member  = var.pubsub_agent',
        to: '  topic   = module.dead_letter.topic.name\n  role    = "roles/pubsub.viewer"\n  member  = var.pubsub_agent',
      },
    ],
    tier: 'B',
    says: /the Pub\/Sub agent has no roles\/pubsub\.publisher on /,
  },
  {
    kind: 'no subscription on the dead-letter topic',
    tree: 'terraform',
    edits: [
      {
        file: subscriptionModule,
        from: '  topic                      = module.dead_letter.topic.id',
        to: '  topic                      = var.topic_id',
      },
    ],
    tier: 'B',
    says: /dead-letter has no subscription/,
  },
  {
    kind: 'an attribute that is another each time',
    tree: 'terraform',
    edits: [
      { file: 'modules/topic/main.tf', from: '= var.labels', to: '= merge(var.labels, { applied = formatdate("hhmmss", timestamp()) })' },
    ],
    tier: 'B',
    says: /google_pubsub_topic\.this: update/,
  },
  {
    kind: 'ordering on a subscription that pushes',
    tree: 'terraform',
    edits: [{ file: subscriptionModule, from: 'enable_message_ordering = false', to: 'enable_message_ordering = true' }],
    tier: 'B',
    says: /enable_message_ordering must be false/,
  },
  {
    kind: 'few attempts for early messages that do not park',
    tree: 'terraform',
    edits: [
      { file: 'deployables.tf', from: '"fifo" ? var.fifo.max_delivery_attempts', to: '"fifo" ? 20' },
      { file: 'environment.tf', from: 'SINK = local.sinks.fifo', to: 'FIFO_EARLY = "nack", SINK = local.sinks.fifo' },
    ],
    tier: 'B',
    says: /100 attempts are the least, or early must be park/,
  },
  {
    kind: 'a required environment variable is missing',
    tree: 'terraform',
    edits: [{ file: 'environment.tf', from: `CONSUMER = "\${var.name_prefix}-fifo", `, to: '' }],
    tier: 'B',
    says: /CONSUMER is not set; fifo needs it/,
  },
  {
    kind: 'the pushing account may not invoke',
    tree: 'terraform',
    edits: [{ file: functionModule, from: '"roles/run.invoker"', to: '"roles/run.viewer"' }],
    tier: 'B',
    says: /has no roles\/run\.invoker on/,
  },
  {
    kind: 'retention above the lifetime of keys',
    tree: 'fifo',
    edits: [{ file: 'main.tf', from: 'local.retention_seconds + local.dead_letter_seconds + 86400', to: '600000' }],
    tier: 'B',
    says: /ttlSeconds is 600000; it must be at least 604800/,
  },
  {
    kind: 'nobody sweeps',
    tree: 'fifo',
    edits: [{ file: 'main.tf', from: '["sweep", "relay"]', to: '["relay"]' }],
    tier: 'B',
    says: /no Cloud Scheduler job posts to \/sweep/,
  },
  {
    kind: 'an index that a query needs is missing',
    tree: 'fifo',
    edits: [{ file: 'main.tf', from: '"consumer", "stream", "epoch", "seq"]', to: '"consumer", "stream", "seq"]' }],
    tier: 'B',
    says: /no google_firestore_index for ptk-parked: consumer ASCENDING, stream ASCENDING, epoch/,
  },
];
