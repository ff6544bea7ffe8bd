import { describe, expect, test } from 'vitest';
import { broken, constraints, exclusive, oneNeeded } from './constraints.ts';
import { googleSchema } from './schema.ts';
import { unknown, type Value, type Values } from './values.ts';

/** An object with one value at a path; a block is a list. */
const at = (path: string, value: Value): Values => {
  const [name = '', ...rest] = path.split('.');
  return { [name]: rest.length === 0 ? value : [at(rest.join('.'), value)] };
};

const subscription = 'google_pubsub_subscription';
const queue = 'google_cloud_tasks_queue';
/** Type, path, what is taken, what is not. */
const limits: readonly (readonly [type: string, path: string, taken: readonly Value[], refused: readonly Value[]])[] = [
  ['google_pubsub_topic', 'name', ['abc', `a${'b'.repeat(254)}`], ['ab', `a${'b'.repeat(255)}`, '1bc', 'google', 'a b']],
  ['google_pubsub_topic', 'message_retention_duration', ['600s', '2678400s'], ['599s', '2678401s', '600', '10m']],
  [subscription, 'ack_deadline_seconds', [10, 600], [9, 601]],
  [subscription, 'message_retention_duration', ['600s', '2678400s'], ['599s', '2678401s']],
  [subscription, 'expiration_policy.ttl', ['', '86400s'], ['86399s']],
  [subscription, 'dead_letter_policy.max_delivery_attempts', [5, 100], [4, 101]],
  [subscription, 'dead_letter_policy.dead_letter_topic', ['projects/p/topics/t'], ['t', 'projects/p/topics']],
  [subscription, 'retry_policy.minimum_backoff', ['0s', '600s', '0.5s'], ['601s', '-1s', '5']],
  [subscription, 'retry_policy.maximum_backoff', ['600s'], ['600.1s']],
  [subscription, 'filter', ['x'.repeat(256), 'é'.repeat(128)], ['x'.repeat(257), 'é'.repeat(129)]],
  [subscription, 'push_config.push_endpoint', ['https://a.b/c', 'http://127.0.0.1:1'], ['a.b', 'https://']],
  [subscription, 'push_config.oidc_token.service_account_email', ['a@b.c'], ['serviceAccount:a', 'a@b']],
  [queue, 'rate_limits.max_dispatches_per_second', [0, 500], [-1, 501]],
  [queue, 'rate_limits.max_concurrent_dispatches', [5_000], [5_001]],
  [queue, 'retry_config.max_attempts', [-1, 1], [-2]],
  [queue, 'stackdriver_logging_config.sampling_ratio', [0, 1], [-0.1, 1.1]],
  ['google_cloud_scheduler_job', 'attempt_deadline', ['15s', '1800s'], ['14s', '1801s']],
  ['google_cloud_scheduler_job', 'schedule', ['* * * * *', 'every 5 minutes'], ['* * * *', 'often']],
  ['google_firestore_database', 'name', ['(default)', 'abcd', `a${'b'.repeat(62)}`], ['abc', `a${'b'.repeat(63)}`, 'Abcd', 'a_cd']],
  ['google_service_account', 'account_id', ['abcdef', `a${'b'.repeat(29)}`], ['abcde', `a${'b'.repeat(30)}`, '1bcdef', 'abcde-']],
  ['google_storage_bucket', 'name', ['abc', 'a'.repeat(63)], ['ab', 'a'.repeat(64), 'Abc', 'google-abc']],
  ['google_redis_instance', 'memory_size_gb', [1, 300], [0, 301]],
  ['google_redis_instance', 'tier', ['BASIC', 'STANDARD_HA'], ['STANDARD']],
  ['google_cloudfunctions2_function', 'service_config.timeout_seconds', [1, 3_600], [0, 3_601]],
  ['google_cloudfunctions2_function', 'build_config.runtime', ['nodejs22', 'nodejs24'], ['nodejs20', 'node24']],
  ['google_app_engine_application', 'location_id', ['europe-west', 'europe-west3', 'us-central'], ['europe-west1', 'us-central1']],
  ['google_app_engine_standard_app_version', 'version_id', ['live'], ['default', 'latest', 'ah-1', 'Live']],
  [
    'google_project_iam_member',
    'member',
    ['serviceAccount:a@b.c', 'user:a@b.c', 'group:a@b.c', 'domain:b.c'],
    ['a@b.c', 'serviceAccount:a'],
  ],
  ['google_project_iam_member', 'role', ['roles/pubsub.publisher', 'projects/p/roles/mine'], ['pubsub.publisher', 'role/a']],
  ['google_monitoring_alert_policy', 'conditions.condition_threshold.filter', ['resource.type = "a"'], ['metric.type = "a"']],
  ['google_monitoring_dashboard', 'dashboard_json', ['{}'], ['{']],
];

describe('what the APIs take', () => {
  test.each(limits)('%s: %s', (type, path, taken, refused) => {
    for (const value of taken) expect(broken(type, at(path, value))).toEqual([]);
    for (const value of refused)
      expect(broken(type, at(path, value))).toEqual([expect.stringMatching(new RegExp(`^${path.replaceAll('.', '\\.')} (is|has) `))]);
  });

  test('a value that is not yet known, or that a mock makes up for another resource, breaks nothing', () => {
    expect(broken(subscription, at('ack_deadline_seconds', unknown))).toEqual([]);
    expect(broken(subscription, at('dead_letter_policy.dead_letter_topic', 'zg6sqn3w'))).toEqual([]);
    expect(broken('google_project_iam_member', at('member', 'zg6sqn3w'))).toHaveLength(1);
  });
});

describe('the tables', () => {
  const isThere = (type: string, path: string): boolean => {
    let block = googleSchema.resources.get(type);
    const names = path.split('.');
    for (const name of names.slice(0, -1)) block = block?.blocks.get(name)?.block;
    const last = names.at(-1) ?? '';
    return block !== undefined && (block.attributes.has(last) || block.blocks.has(last));
  };

  test('speak of what the schema has', () => {
    const paths = Object.entries(constraints).flatMap(([type, own]) => Object.keys(own).map((path) => [type, path] as const));
    const groups = [exclusive, oneNeeded].flatMap((table) =>
      Object.entries(table).flatMap(([type, own]) => own.flat().map((path) => [type, path] as const)),
    );
    expect([...paths, ...groups].filter(([type, path]) => !isThere(type, path))).toEqual([]);
    expect(paths.length).toBeGreaterThan(80);
  });
});
