import { describe, expect, test } from 'vitest';
import { rules } from './all.ts';
import { type Address, soundResources, worldWith } from './sound-world.ts';
import { type Applied, type Fields, worldOf } from './world.ts';

const findings = (world = worldWith()) => rules.flatMap((rule) => rule.findings(world));

type Changes = Readonly<Partial<Record<Address, Fields | null>>>;
const orders = soundResources['google_pubsub_subscription.orders'];
const [fifoService] = soundResources['google_cloudfunctions2_function.fifo'].service_config;
const [delayService] = soundResources['google_cloudfunctions2_function.delay'].service_config;
const [sweepTarget] = soundResources['google_cloud_scheduler_job.sweep'].http_target as readonly [Fields];

const subscription = (change: Fields): Changes => ({ 'google_pubsub_subscription.orders': change });
const deadLetters = (max_delivery_attempts: number) => ({
  dead_letter_policy: [{ ...orders.dead_letter_policy[0], max_delivery_attempts }],
});
const service = (change: Fields): Changes => ({
  'google_cloudfunctions2_function.fifo': { service_config: [{ ...fifoService, ...change }] },
});
const environment = (change: Readonly<Record<string, string | undefined>>): Changes => {
  const given = Object.entries({ ...fifoService.environment_variables, ...change }).filter(([, value]) => value !== undefined);
  return service({ environment_variables: Object.fromEntries(given) });
};
const delayEnvironment = (change: Fields): Changes => ({
  'google_cloudfunctions2_function.delay': {
    service_config: [{ ...delayService, environment_variables: { ...delayService.environment_variables, ...change } }],
  },
});

const handlerLessGrants: readonly Applied[] = [
  ...['final', 'target'].map((topic) => ({
    address: topic,
    type: 'google_pubsub_topic_iam_member',
    values: { topic, role: 'roles/pubsub.publisher', member: 'serviceAccount:release@p.iam.gserviceaccount.com' },
  })),
  {
    address: 'account',
    type: 'google_service_account_iam_member',
    values: {
      service_account_id: 'projects/p/serviceAccounts/release@p.iam.gserviceaccount.com',
      role: 'roles/iam.serviceAccountUser',
      member: 'serviceAccount:enqueuer@p.iam.gserviceaccount.com',
    },
  },
];

/** What is changed, and the one finding that must come of it; where there is none, the other side of the limit. */
const cases: (readonly [what: string, changes: Changes, finding?: string])[] = [
  [
    'no grant to publish dead letters',
    { 'google_pubsub_topic_iam_member.agent': null },
    'the Pub/Sub agent has no roles/pubsub.publisher on projects/p/topics/dead',
  ],
  [
    'a grant to publish to another topic',
    { 'google_pubsub_topic_iam_member.agent': { topic: 'orders' } },
    'has no roles/pubsub.publisher on projects/p/topics/dead',
  ],
  [
    'a grant to a person',
    { 'google_pubsub_topic_iam_member.agent': { member: 'user:a@b.c' } },
    'has no roles/pubsub.publisher on projects/p/topics/dead',
  ],
  ['no grant to ack', { 'google_pubsub_subscription_iam_member.agent': null }, 'the Pub/Sub agent has no roles/pubsub.subscriber on it'],
  [
    'no subscription of dead letters',
    { 'google_pubsub_subscription.dead': { topic: 'projects/p/topics/out' } },
    'projects/p/topics/dead has no subscription',
  ],
  [
    'dead letters of six days',
    { 'google_pubsub_subscription.dead': { message_retention_duration: '604799s' } },
    'no subscription keeps messages for 604800s or more',
  ],
  ['dead letters of a week', { 'google_pubsub_subscription.dead': { message_retention_duration: '604800s' } }],
  [
    'a subscription that expires',
    { 'google_pubsub_subscription.dead': { expiration_policy: [{ ttl: '2678400s' }] } },
    'it is deleted after 31 idle days',
  ],
  ['ordering', subscription({ enable_message_ordering: true }), 'enable_message_ordering must be false'],
  [
    'a deadline below the timeout',
    subscription({ ack_deadline_seconds: 59 }),
    'ack_deadline_seconds is 59; google_cloudfunctions2_function.fifo may run for 60 s',
  ],
  ['a lease below the deadline', environment({ DEDUP_LEASE_MS: '59999' }), 'leaseMs is 59999; it must be at least 60000'],
  ['a lease as long as the deadline', environment({ DEDUP_LEASE_MS: '60000' })],
  [
    'keys that end a second too soon',
    environment({ DEDUP_TTL_SECONDS: '3369599' }),
    'DEDUP_TTL_SECONDS is 3369599; retention, dead-letter retention and a day are 3369600',
  ],
  ['no dedup, so no keys', environment({ DEDUP_TTL_SECONDS: '60', DEDUP_MODE: 'off' })],
  [
    '99 attempts for nacked messages',
    { ...subscription(deadLetters(99)), ...environment({ FIFO_EARLY: 'nack' }) },
    '100 attempts are the least, or early must be park',
  ],
  ['100 attempts for nacked messages', { ...subscription(deadLetters(100)), ...environment({ FIFO_EARLY: 'nack' }) }],
  ['5 attempts for parked messages', subscription(deadLetters(5))],
  ['a call without a token', subscription({ push_config: [{ push_endpoint: fifoService.uri }] }), 'it calls ptk-fifo without oidc_token'],
  [
    'an audience of another',
    {
      'google_cloud_scheduler_job.sweep': {
        http_target: [
          { ...sweepTarget, oidc_token: [{ service_account_email: 'invoker@p.iam.gserviceaccount.com', audience: 'https://a' }] },
        ],
      },
    },
    'the audience is https://a; ptk-fifo takes https://fifo.run.app',
  ],
  [
    'no invoker',
    { 'google_cloud_run_v2_service_iam_member.delay': null },
    'invoker@p.iam.gserviceaccount.com has no roles/run.invoker on ptk-delay',
  ],
  [
    'the default account',
    service({ service_account_email: '12-compute@developer.gserviceaccount.com' }),
    "it runs as the project's default account",
  ],
  [
    'an account of two',
    { 'google_app_engine_standard_app_version.release': { service_account: 'enqueuer@p.iam.gserviceaccount.com' } },
    'it shares enqueuer@p.iam.gserviceaccount.com with google_cloudfunctions2_function.delay',
  ],
  ['an editor', { 'google_project_iam_member.state': { role: 'roles/editor' } }, 'roles/editor on the project'],
  [
    'a publisher of every topic',
    { 'google_project_iam_member.state': { role: 'roles/pubsub.publisher' } },
    'roles/pubsub.publisher can be granted on the one resource',
  ],
  ['every database', { 'google_project_iam_member.state': { condition: [] } }, 'roles/datastore.user needs a condition'],
  [
    'no enqueuer',
    { 'google_cloud_tasks_queue_iam_member.main': null },
    'enqueuer@p.iam.gserviceaccount.com has no roles/cloudtasks.enqueuer on',
  ],
  ['a name that nobody reads', environment({ SINKS: 'a' }), 'fifo reads no SINKS'],
  ['an option of another deployable', delayEnvironment({ FIFO_LEASE_MS: '60000' }), 'delay reads no FIFO_LEASE_MS'],
  ['no consumer', environment({ CONSUMER: undefined }), 'CONSUMER is not set; fifo needs it'],
  [
    'an option out of its range',
    environment({ FIFO_LEASE_MS: '99' }),
    'FIFO_LEASE_MS is "99"; it must be a whole number from 100 to 3600000',
  ],
  [
    'a queue elsewhere',
    { 'google_cloud_tasks_queue.main': { location: 'europe-west3' } },
    'it is in europe-west3; App Engine is in europe-west1',
  ],
  [
    'tasks that end',
    { 'google_cloud_tasks_queue.main': { retry_config: [{ max_attempts: 100, max_retry_duration: '0s' }] } },
    'max_attempts is 100; it must be -1',
  ],
  [
    'tasks of an hour',
    { 'google_cloud_tasks_queue.main': { retry_config: [{ max_attempts: -1, max_retry_duration: '3600s' }] } },
    'max_retry_duration is 3600s; it must be "0s"',
  ],
  [
    'a queue that is not there',
    delayEnvironment({ TASK_QUEUES: 'projects/p/locations/l/queues/other' }),
    'TASK_QUEUES names projects/p/locations/l/queues/other, which is not deployed',
  ],
  ['another database', delayEnvironment({ FIRESTORE_DATABASE: 'other' }), 'FIRESTORE_DATABASE is other; there is ptk'],
  ['a cache that evicts', { 'google_redis_instance.main': { redis_configs: {} } }, 'maxmemory-policy must be noeviction'],
  ['code under a fixed name', { 'google_storage_bucket_object.code': { name: 'code.zip' } }, 'its name must hold a hash of the content'],
  ['no sweep', { 'google_cloud_scheduler_job.sweep': null }, 'no Cloud Scheduler job posts to /sweep'],
  [
    'no grant on the sink',
    { 'google_pubsub_topic_iam_member.out': null },
    'worker@p.iam.gserviceaccount.com has no roles/pubsub.publisher on out',
  ],
  ['no index', { 'google_firestore_index.c': null }, 'no google_firestore_index for ptk-parked: consumer ASCENDING, dueAt ASCENDING'],
  ['no TTL policy', { 'google_firestore_field.dedup': null }, 'no google_firestore_field with ttl_config for ptk-dedup'],
  [
    'payloads that stay for ever',
    { 'google_firestore_field.payloads': { ttl_config: [] } },
    'no google_firestore_field with ttl_config for ptk-payloads',
  ],
];

describe('the rules', () => {
  test('hold for a sound deployment', () => {
    expect(findings()).toEqual([]);
  });

  test.each(cases.map(([what, changes, finding]) => ({ what, changes, finding })))('$what', ({ changes, finding }) => {
    const found = findings(worldWith(changes));
    if (finding === undefined) expect(found).toEqual([]);
    else expect(found).toContainEqual(expect.stringContaining(finding));
  });

  test('a function to which nothing pushes', () => {
    const world = worldWith({ 'google_pubsub_subscription.later': null });
    expect(findings(world)).toContain('google_cloudfunctions2_function.delay: nothing pushes to it');
  });

  test.each<{ what: string; lost?: string; finding?: string }>([
    { what: 'may do all that they must' },
    { what: 'have no topic', lost: 'final', finding: 'release@p.iam.gserviceaccount.com, as which its tasks publish, has no' },
    { what: 'lack one of the targets', lost: 'target', finding: 'has no roles/pubsub.publisher on projects/p/topics/target' },
    {
      what: 'are of an account that their maker may not use',
      lost: 'account',
      finding: 'enqueuer@p.iam.gserviceaccount.com has no roles/iam.serviceAccountUser on release@p',
    },
  ])('tasks that publish by themselves and $what', ({ lost, finding }) => {
    const told = {
      DELAY_MODE: 'handler-less',
      RELEASE_ACCOUNT: 'release@p.iam.gserviceaccount.com',
      FINAL_TOPIC: 'projects/p/topics/final',
    };
    const world = worldWith(
      {
        ...delayEnvironment({ ...told, TARGET_TOPICS: 'projects/p/topics/target' }),
        'google_app_engine_standard_app_version.release': null,
      },
      handlerLessGrants.filter(({ address }) => address !== lost),
    );
    expect(findings(world)).toEqual(finding === undefined ? [] : [expect.stringContaining(finding)]);
  });

  test('an index that no query needs', () => {
    const values = { collection: 'ptk-dedup', fields: [{ field_path: 'a', order: 'ASCENDING' }] };
    const world = worldWith({}, [{ address: 'google_firestore_index.e', type: 'google_firestore_index', values }]);
    expect(findings(world)).toEqual(['no query needs the google_firestore_index for ptk-dedup: a ASCENDING']);
  });
});

test('a state is read through its modules, without data sources', () => {
  const resource = (mode: string, address: string) => ({ mode, address, type: 'google_pubsub_topic', values: { id: address } });
  const world = worldOf({
    values: { root_module: { resources: [resource('data', 'a')], child_modules: [{ resources: [resource('managed', 'b')] }] } },
  });
  expect(world.all('google_pubsub_topic').map(({ address }) => address)).toEqual(['b']);
  expect(worldOf({}).all('google_pubsub_topic')).toEqual([]);
});
