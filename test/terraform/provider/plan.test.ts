import { describe, expect, test } from 'vitest';
import { made } from './made.ts';
import { plan } from './plan.ts';
import { googleSchema } from './schema.ts';
import { completed, fromBytes, toBytes, unknown, type Values } from './values.ts';

const project = { id: 'p', number: '12', region: 'europe-west1' };
const blockOf = (type: string) => {
  const block = googleSchema.resources.get(type);
  if (!block) throw new Error(`the schema knows no ${type}`);
  return block;
};
const proposed = (type: string, values: Values) => completed(blockOf(type), values);
/** A resource as it is after its first apply. */
const applied = (type: string, values: Values) => made(type, plan(type, blockOf(type), null, proposed(type, values)).planned, project);

describe('a resource that is to be made', () => {
  test('has what it is given, defaults, and unknown what the service decides', () => {
    const { planned, replace } = plan(
      'google_pubsub_subscription',
      blockOf('google_pubsub_subscription'),
      null,
      proposed('google_pubsub_subscription', { name: 's', topic: 't' }),
    );
    expect(planned).toMatchObject({ name: 's', topic: 't', message_retention_duration: '604800s', filter: null });
    expect(planned.id).toBe(unknown);
    expect(planned.ack_deadline_seconds).toBe(unknown);
    expect(replace).toEqual([]);
  });

  test('has its full name after apply, and nothing unknown', () => {
    expect(applied('google_pubsub_topic', { name: 't' })).toMatchObject({ id: 'projects/p/topics/t', project: 'p', labels: null });
    expect(applied('google_service_account', { account_id: 'worker' })).toMatchObject({
      email: 'worker@p.iam.gserviceaccount.com',
      member: 'serviceAccount:worker@p.iam.gserviceaccount.com',
      id: 'projects/p/serviceAccounts/worker@p.iam.gserviceaccount.com',
    });
    const cache = applied('google_redis_instance', { name: 'r', memory_size_gb: 1, auth_enabled: true });
    expect(cache).toMatchObject({ id: 'projects/p/locations/europe-west1/instances/r', host: '10.128.0.11', port: 6379 });
    expect(JSON.stringify(cache)).not.toContain('known after apply');
  });

  test('takes from a hook what it decides, in blocks too', () => {
    const { planned } = plan(
      'google_cloudfunctions2_function',
      blockOf('google_cloudfunctions2_function'),
      null,
      proposed('google_cloudfunctions2_function', { name: 'f', location: 'l', service_config: [{ timeout_seconds: 9 }] }),
    );
    const decided = { service_config: [{ uri: 'http://127.0.0.1:1', timeout_seconds: 5 }] };
    expect(made('google_cloudfunctions2_function', planned, project, decided).service_config).toEqual([
      expect.objectContaining({ uri: 'http://127.0.0.1:1', timeout_seconds: 9 }),
    ]);
  });
});

describe('a resource that is there', () => {
  const topic = 'google_pubsub_topic';
  const before = applied(topic, { name: 't', labels: { a: '1' } });

  test('is as it was where nothing changes', () => {
    expect(plan(topic, blockOf(topic), before, before)).toEqual({ planned: before, replace: [] });
  });

  test('changes in place, with what follows from the change', () => {
    const { planned, replace } = plan(topic, blockOf(topic), before, { ...before, labels: { a: '2' } });
    expect(planned).toMatchObject({ id: 'projects/p/topics/t', labels: { a: '2' } });
    expect(planned.effective_labels).toBe(unknown);
    expect(planned.terraform_labels).toBe(unknown);
    expect(replace).toEqual([]);
  });

  test.each([
    ['google_pubsub_topic', { name: 't' }, { name: 'u' }, ['name']],
    ['google_pubsub_subscription', { name: 's', topic: 't' }, { enable_message_ordering: true }, ['enable_message_ordering']],
    ['google_pubsub_subscription', { name: 's', topic: 't' }, { filter: 'attributes:a' }, ['filter']],
    ['google_pubsub_subscription', { name: 's', topic: 't' }, { ack_deadline_seconds: 60 }, []],
    ['google_project_iam_member', { project: 'p', role: 'r', member: 'm' }, { role: 'other' }, ['role']],
    ['google_cloud_tasks_queue', { name: 'q', location: 'l' }, { location: 'm' }, ['location']],
    ['google_cloud_tasks_queue', { name: 'q', location: 'l' }, { rate_limits: [{ max_dispatches_per_second: 5 }] }, []],
    [
      'google_app_engine_standard_app_version',
      { service: 's', version_id: 'live', runtime: 'nodejs24' },
      { env_variables: { A: 'b' } },
      [],
    ],
  ] as readonly (readonly [string, Values, Values, readonly string[]])[])(
    '%s %j with %j is made anew for %j',
    (type, values, change, replace) => {
      const there = applied(type, values);
      expect(plan(type, blockOf(type), there, proposed(type, { ...there, ...change })).replace).toEqual(replace);
    },
  );
});

test('values go to Terraform and come back, those that are not known too', () => {
  const block = blockOf('google_pubsub_topic');
  const values = completed(block, { name: 't', labels: { a: '1' }, id: unknown });
  expect(fromBytes(toBytes(block, values))).toEqual(values);
  expect(fromBytes(toBytes(block, null))).toBeNull();
  // As Terraform writes it: a map of one member whose value is a fixext 1 of type 0.
  expect(fromBytes(Uint8Array.of(0x81, 0xa2, 0x69, 0x64, 0xd4, 0, 0))).toEqual({ id: unknown });
});
