import { type Applied, createWorld, type Fields, type World } from './world.ts';

const project = 'projects/p';
const uri = 'https://fifo.run.app';
const account = (name: string) => `${name}@p.iam.gserviceaccount.com`;
const agent = 'serviceAccount:service-12@gcp-sa-pubsub.iam.gserviceaccount.com';
const worker = `serviceAccount:${account('worker')}`;
const never = [{ ttl: '' }];
const oidc = [{ service_account_email: account('invoker'), audience: uri }];
const publisher = 'roles/pubsub.publisher';
const queue = `${project}/locations/europe-west1/queues/q`;
const index = (collection: string, ...fields: readonly string[]): Fields => ({
  collection,
  fields: [...fields.map((field_path) => ({ field_path, order: 'ASCENDING' })), { field_path: '__name__', order: 'ASCENDING' }],
});
const ending = (collection: string): Fields => ({ collection, ttl_config: [{ state: 'ACTIVE' }] });
const job = (path: string): Fields => ({ name: path, http_target: [{ uri: `${uri}/${path}`, oidc_token: oidc }] });

/** A fifo function, and a delay function with its App Engine service, as they are after apply. Every rule holds. */
export const soundResources = {
  'google_pubsub_topic.orders': { id: `${project}/topics/orders`, message_retention_duration: null },
  'google_pubsub_topic.out': { id: `${project}/topics/out` },
  'google_pubsub_topic.dead': { id: `${project}/topics/dead` },
  'google_pubsub_subscription.orders': {
    id: `${project}/subscriptions/orders`,
    topic: `${project}/topics/orders`,
    ack_deadline_seconds: 60,
    message_retention_duration: '604800s',
    enable_message_ordering: false,
    expiration_policy: never,
    push_config: [{ push_endpoint: uri, oidc_token: oidc }],
    dead_letter_policy: [{ dead_letter_topic: `${project}/topics/dead`, max_delivery_attempts: 100 }],
    retry_policy: [{ minimum_backoff: '1s', maximum_backoff: '60s' }],
  },
  'google_pubsub_subscription.later': {
    id: `${project}/subscriptions/later`,
    topic: `${project}/topics/orders`,
    ack_deadline_seconds: 60,
    expiration_policy: never,
    push_config: [
      {
        push_endpoint: 'https://delay.run.app',
        oidc_token: [{ service_account_email: account('invoker'), audience: 'https://delay.run.app' }],
      },
    ],
  },
  'google_pubsub_subscription.dead': {
    id: `${project}/subscriptions/dead`,
    topic: `${project}/topics/dead`,
    message_retention_duration: '2678400s',
    expiration_policy: never,
  },
  'google_pubsub_topic_iam_member.agent': { topic: 'dead', role: publisher, member: agent },
  'google_pubsub_topic_iam_member.dead': { topic: 'dead', role: publisher, member: worker },
  'google_pubsub_topic_iam_member.out': { topic: `${project}/topics/out`, role: publisher, member: worker },
  'google_pubsub_subscription_iam_member.agent': { subscription: 'orders', role: 'roles/pubsub.subscriber', member: agent },
  'google_cloudfunctions2_function.fifo': {
    name: 'ptk-fifo',
    build_config: [{ entry_point: 'fifo' }],
    service_config: [
      {
        uri,
        timeout_seconds: 60,
        service_account_email: account('worker'),
        environment_variables: {
          GOOGLE_CLOUD_PROJECT: 'p',
          FIRESTORE_DATABASE: 'ptk',
          CONSUMER: 'fifo',
          SINK: 'topic:out',
          DEAD_LETTER_TOPIC: `${project}/topics/dead`,
          DEDUP_TTL_SECONDS: '3369600',
        },
      },
    ],
  },
  'google_cloudfunctions2_function.delay': {
    name: 'ptk-delay',
    build_config: [{ entry_point: 'delay' }],
    service_config: [
      {
        uri: 'https://delay.run.app',
        timeout_seconds: 60,
        service_account_email: account('enqueuer'),
        environment_variables: { GOOGLE_CLOUD_PROJECT: 'p', FIRESTORE_DATABASE: 'ptk', TASK_QUEUES: queue, FINAL_TOPIC: 'elsewhere' },
      },
    ],
  },
  'google_app_engine_standard_app_version.release': {
    service: 'release',
    project: 'p',
    service_account: account('release'),
    env_variables: { FIRESTORE_DATABASE: 'ptk', TASK_QUEUES: queue, FINAL_TOPIC: 'elsewhere' },
  },
  'google_app_engine_application.main': { location_id: 'europe-west' },
  'google_cloud_tasks_queue.main': { id: queue, location: 'europe-west1', retry_config: [{ max_attempts: -1, max_retry_duration: '0s' }] },
  'google_cloud_tasks_queue_iam_member.main': {
    name: 'q',
    role: 'roles/cloudtasks.enqueuer',
    member: `serviceAccount:${account('enqueuer')}`,
  },
  'google_cloud_run_v2_service_iam_member.fifo': {
    name: 'ptk-fifo',
    role: 'roles/run.invoker',
    member: `serviceAccount:${account('invoker')}`,
  },
  'google_cloud_run_v2_service_iam_member.delay': {
    name: 'ptk-delay',
    role: 'roles/run.invoker',
    member: `serviceAccount:${account('invoker')}`,
  },
  'google_project_iam_member.state': { role: 'roles/datastore.user', member: worker, condition: [{ title: 'one' }] },
  'google_cloud_scheduler_job.sweep': job('sweep'),
  'google_cloud_scheduler_job.relay': job('relay'),
  'google_firestore_database.main': { name: 'ptk' },
  'google_firestore_field.dedup': ending('ptk-dedup'),
  'google_firestore_field.outbox': ending('ptk-outbox'),
  'google_firestore_field.delays': ending('ptk-delays'),
  'google_firestore_field.payloads': ending('ptk-payloads'),
  'google_firestore_field.lateness': ending('ptk-lateness'),
  'google_firestore_index.a': index('ptk-outbox', 'state', 'stream', 'nextAttemptAt'),
  'google_firestore_index.b': index('ptk-outbox', 'state', 'stream', 'epoch', 'seq'),
  'google_firestore_index.c': index('ptk-parked', 'consumer', 'dueAt'),
  'google_firestore_index.delays': index('ptk-delays', 'state', 'shard', 'dueAt'),
  'google_firestore_index.d': index('ptk-parked', 'consumer', 'stream', 'epoch', 'seq'),
  'google_redis_instance.main': { redis_configs: { 'maxmemory-policy': 'noeviction' } },
  'google_storage_bucket_object.code': { name: `code-${'a'.repeat(64)}.zip` },
} as const satisfies Readonly<Record<string, Fields>>;

export type Address = keyof typeof soundResources;

/** That world with members changed; a resource of null is not there, and neither is a member of undefined. */
export function worldWith(changes: Readonly<Partial<Record<Address, Fields | null>>> = {}, more: readonly Applied[] = []): World {
  const resources = Object.entries(soundResources).flatMap(([address, values]): Applied[] => {
    const change = changes[address as Address];
    return change === null ? [] : [{ address, type: address.slice(0, address.indexOf('.')), values: { ...values, ...change } }];
  });
  return createWorld([...resources, ...more]);
}
