import { deployedIn } from './deployables.ts';
import { mayPublish } from './identities.ts';
import { blockOf, type Fields, type Rule, secondsOf, textOf, type World } from './world.ts';

/** App Engine calls two regions by other names than the rest of the cloud. */
const aliases: Readonly<Record<string, string>> = { 'europe-west': 'europe-west1', 'us-central': 'us-central1' };

const databasesOf = (world: World) => world.all('google_firestore_database').map(({ values }) => textOf(values.name));

export const storeRules: readonly Rule[] = [
  {
    name: 'queues are in the region of App Engine',
    findings: (world) =>
      world.all('google_app_engine_application').flatMap(({ values }) => {
        const location = textOf(values.location_id);
        const region = aliases[location] ?? location;
        return world
          .all('google_cloud_tasks_queue')
          .filter((queue) => queue.values.location !== region)
          .map((queue) => `${queue.address}: it is in ${textOf(queue.values.location)}; App Engine is in ${region}`);
      }),
  },
  {
    name: 'a task is tried until it is done',
    findings: (world) =>
      world.all('google_cloud_tasks_queue').flatMap(({ address, values }) => {
        const retries = blockOf(values, 'retry_config');
        const limited = [
          ...(Number(retries?.max_attempts ?? 100) === -1
            ? []
            : [`max_attempts is ${String(retries?.max_attempts ?? 100)}; it must be -1`]),
          ...((secondsOf(retries?.max_retry_duration) ?? 0) === 0
            ? []
            : [`max_retry_duration is ${textOf(retries?.max_retry_duration)}; it must be "0s"`]),
        ];
        return limited.map((reason) => `${address}: ${reason}, or a message is lost with its task`);
      }),
  },
  {
    name: 'every queue that is told of is there',
    findings: (world) =>
      deployedIn(world).flatMap(({ address, environment }) =>
        (environment.TASK_QUEUES ?? '')
          .split(',')
          .filter((queue) => queue !== '' && !world.named('google_cloud_tasks_queue', queue))
          .map((queue) => `${address}: TASK_QUEUES names ${queue}, which is not deployed`),
      ),
  },
  {
    name: 'every deployable uses the database that is deployed',
    findings: (world) => {
      const databases = databasesOf(world);
      if (databases.length === 0) return [];
      return deployedIn(world)
        .filter(({ environment }) => !databases.includes(environment.FIRESTORE_DATABASE ?? '(default)'))
        .map(
          ({ address, environment }) =>
            `${address}: FIRESTORE_DATABASE is ${environment.FIRESTORE_DATABASE ?? 'not set'}; there is ${databases.join(', ')}`,
        );
    },
  },
  {
    name: 'a cache never evicts a key',
    findings: (world) =>
      [...world.all('google_redis_instance'), ...world.all('google_memorystore_instance')]
        .filter(({ values }) => ((values.redis_configs ?? values.engine_configs ?? {}) as Fields)['maxmemory-policy'] !== 'noeviction')
        .map(({ address }) => `${address}: maxmemory-policy must be noeviction`),
  },
  {
    name: 'new code is a new object',
    findings: (world) =>
      world
        .all('google_storage_bucket_object')
        .filter(({ values }) => !/[0-9a-f]{32,64}/.test(textOf(values.name)))
        .map(({ address }) => `${address}: its name must hold a hash of the content, or a new archive is not deployed`),
  },
  {
    name: 'the fifo function is swept and its outbox relayed by schedule',
    findings: (world) =>
      deployedIn(world)
        .filter(({ kind }) => kind === 'fifo')
        .flatMap(({ address, uri }) =>
          ['/sweep', '/relay']
            .filter(
              (path) => !world.all('google_cloud_scheduler_job').some(({ values }) => blockOf(values, 'http_target')?.uri === uri + path),
            )
            .map((path) => `${address}: no Cloud Scheduler job posts to ${path}`),
        ),
  },
  {
    name: 'a topic that a deployable is told of is one that it may publish to',
    findings: (world) =>
      deployedIn(world).flatMap(({ address, serviceAccount, environment }) => {
        const sink = /^topic:(.+)$/.exec(environment.SINK ?? '')?.[1] ?? '';
        const told = [
          environment.DEAD_LETTER_TOPIC ?? '',
          environment.FINAL_TOPIC ?? '',
          environment.FIFO_LANE_TOPIC ?? '',
          ...(environment.TARGET_TOPICS ?? '').split(','),
          sink,
        ];
        return told
          .filter((topic) => topic !== '' && world.named('google_pubsub_topic', topic) && !mayPublish(world, topic, serviceAccount))
          .map((topic) => `${address}: ${serviceAccount} has no roles/pubsub.publisher on ${topic}`);
      }),
  },
];
