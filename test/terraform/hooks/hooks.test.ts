import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Emulator, startEmulator } from '../../../src/emulator/server.ts';
import { createCloud } from '../provider/cloud.ts';
import type { Hook } from '../provider/hooks.ts';
import type { Values } from '../provider/values.ts';
import { type Clients, connectClients, duration } from './clients.ts';
import { inTurn } from './deployables.ts';
import { type Front, startFront } from './front.ts';
import { pubsubHooks } from './pubsub.ts';
import { fireJob } from './scheduler.ts';
import { tasksHooks } from './tasks.ts';

const projectId = 'ptk-hooks';
const cloud = createCloud(() => ({ id: projectId, number: '12', region: 'europe-west1' }));
let emulator: Emulator;
let clients: Clients;
let hooks: Readonly<Record<string, Hook>>;
beforeAll(async () => {
  emulator = await startEmulator();
  clients = connectClients(emulator, projectId);
  hooks = { ...pubsubHooks(clients), ...tasksHooks(clients) };
});
afterAll(async () => {
  await clients.close();
  await emulator.close();
});

const hookOf = (type: string): Required<Hook> => hooks[type] as Required<Hook>;
const topic = (name: string): Values => ({ id: `projects/${projectId}/topics/${name}`, name, project: projectId, labels: { a: '1' } });

describe('hooks', () => {
  test('make, change and delete a topic in the emulator', async () => {
    const hook = hookOf('google_pubsub_topic');
    const values: Values = { ...topic('orders'), message_retention_duration: '600s' };
    await hook.create(values, cloud);
    expect(emulator.pubsub.topics()).toMatchObject([{ name: values.id, labels: { a: '1' }, messageRetentionDuration: { seconds: '600' } }]);
    await hook.update({ ...values, labels: { a: '2' }, message_retention_duration: null }, values, cloud);
    expect(emulator.pubsub.topics()).toMatchObject([{ labels: { a: '2' }, messageRetentionDuration: null }]);
    expect(await hook.isThere(values, cloud)).toBe(true);
    await hook.delete(values, cloud);
    expect(await hook.isThere(values, cloud)).toBe(false);
  });

  test('make a subscription with all that Terraform says of it', async () => {
    await hookOf('google_pubsub_topic').create(topic('payments'), cloud);
    await hookOf('google_pubsub_topic').create(topic('dead'), cloud);
    const hook = hookOf('google_pubsub_subscription');
    const values: Values = {
      id: `projects/${projectId}/subscriptions/payments`,
      topic: 'payments',
      project: projectId,
      ack_deadline_seconds: 60,
      message_retention_duration: '1200s',
      enable_message_ordering: true,
      filter: 'attributes:a',
      expiration_policy: [{ ttl: '' }],
      retry_policy: [{ minimum_backoff: '1.5s', maximum_backoff: '60s' }],
      dead_letter_policy: [{ dead_letter_topic: topic('dead').id ?? null, max_delivery_attempts: 7 }],
      push_config: [{ push_endpoint: 'http://127.0.0.1:9', oidc_token: [{ service_account_email: 'a@b.c', audience: 'd' }] }],
    };
    await hook.create(values, cloud);
    expect(emulator.pubsub.subscriptions()).toMatchObject([
      {
        name: values.id,
        topic: topic('payments').id,
        ackDeadlineSeconds: 60,
        messageRetentionDuration: { seconds: '1200' },
        enableMessageOrdering: true,
        filter: 'attributes:a',
        retryPolicy: { minimumBackoff: { seconds: '1', nanos: 500_000_000 }, maximumBackoff: { seconds: '60' } },
        deadLetterPolicy: { deadLetterTopic: topic('dead').id, maxDeliveryAttempts: 7 },
        pushConfig: { pushEndpoint: 'http://127.0.0.1:9', oidcToken: { serviceAccountEmail: 'a@b.c', audience: 'd' } },
      },
    ]);
    await hook.update({ ...values, ack_deadline_seconds: 20, dead_letter_policy: [] }, values, cloud);
    expect(emulator.pubsub.subscriptions()).toMatchObject([{ ackDeadlineSeconds: 20, deadLetterPolicy: null }]);
    await hook.delete(values, cloud);
    expect(emulator.pubsub.subscriptions()).toEqual([]);
  });

  test('make, change and delete a queue', async () => {
    const hook = hookOf('google_cloud_tasks_queue');
    const name = `projects/${projectId}/locations/l/queues/q`;
    const values: Values = {
      id: name,
      rate_limits: [{ max_dispatches_per_second: 5, max_concurrent_dispatches: 2 }],
      retry_config: [{ max_attempts: -1, min_backoff: '1s', max_backoff: '300s', max_doublings: 8, max_retry_duration: '0s' }],
      app_engine_routing_override: [{ service: 'release' }],
    };
    await hook.create(values, cloud);
    const [made] = await clients.queues.getQueue({ name });
    expect(made).toMatchObject({
      rateLimits: { maxDispatchesPerSecond: 5 },
      retryConfig: { maxAttempts: -1, maxDoublings: 8 },
      appEngineRoutingOverride: { service: 'release' },
    });
    await hook.update({ ...values, rate_limits: [{ max_dispatches_per_second: 9 }] }, values, cloud);
    expect((await clients.queues.getQueue({ name }))[0]).toMatchObject({ rateLimits: { maxDispatchesPerSecond: 9 } });
    await hook.delete(values, cloud);
    expect(await hook.isThere(values, cloud)).toBe(false);
  });

  test.each([
    ['1.5s', { seconds: 1, nanos: 500_000_000 }],
    ['0s', { seconds: 0, nanos: 0 }],
    ['', undefined],
    [null, undefined],
  ])('%j as a duration is %j', (written, read) => {
    expect(duration(written)).toEqual(read);
  });
});

test('deployables start one after the other, also after one that did not', async () => {
  const start = inTurn();
  const events: string[] = [];
  const first = Promise.withResolvers<string>();
  const started = [
    start(() => first.promise),
    start(async () => {
      events.push('second');
      return 'second';
    }),
  ];
  await new Promise((resolve) => setImmediate(resolve));
  expect(events).toEqual([]);
  first.reject(new Error('no answer'));
  expect(await Promise.allSettled(started)).toMatchObject([{ reason: { message: 'no answer' } }, { value: 'second' }]);
});

describe('the front of a function', () => {
  let front: Front;
  const bodies: string[] = [];
  const service = createServer(async (request, answer) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    bodies.push(`${request.url} ${body} ${request.headers.authorization ?? ''}`.trim());
    answer.writeHead(request.url === '/sweep' ? 200 : 204).end();
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    const { port } = service.address() as { port: number };
    const target = () => `http://127.0.0.1:${port}`;
    front = await startFront({ identity: emulator.identity, mayInvoke: (email) => email === 'invoker@b.c', target });
  });
  afterAll(async () => {
    await front.close();
    service.close();
  });
  const call = async (token?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return (await fetch(front.url, { method: 'POST', headers, body: 'a' })).status;
  };
  const token = (audience: string, email = 'invoker@b.c') => emulator.identity.token({ audience, email });

  test('lets through a token for its URL of an account that may invoke, and does not pass it on', async () => {
    expect(await call(await token(front.url))).toBe(204);
    expect(bodies.splice(0)).toEqual(['/ a']);
  });

  test('refuses no token, one for another URL, one that is forged, and one of an account that may not', async () => {
    const good = await token(front.url);
    const others = [undefined, await token('https://a.b'), `${good.slice(0, -8)}AAAAAAAA`, await token(front.url, 'other@b.c')];
    for (const other of others) expect(await call(other)).toBe(403);
    expect(bodies).toEqual([]);
    expect(front.counts.get('other@b.c may not invoke')).toBe(1);
    expect(front.counts.get('no token')).toBe(1);
  });

  test('takes a call of a schedule', async () => {
    const job = (name: string, email: string): Values => ({
      id: `projects/${projectId}/locations/l/jobs/${name}`,
      name,
      http_target: [
        {
          uri: `${front.url}/sweep`,
          http_method: 'POST',
          body: Buffer.from('now').toString('base64'),
          oidc_token: [{ service_account_email: email, audience: front.url }],
        },
      ],
    });
    cloud.create('google_cloud_scheduler_job', job('sweep', 'invoker@b.c'));
    cloud.create('google_cloud_scheduler_job', job('stranger', 'other@b.c'));
    expect(await fireJob(cloud, emulator.identity, 'sweep')).toMatchObject({ status: 200 });
    expect(bodies.splice(0)).toEqual(['/sweep now']);
    expect(await fireJob(cloud, emulator.identity, 'stranger')).toMatchObject({ status: 403 });
    await expect(fireJob(cloud, emulator.identity, 'none')).rejects.toThrow('there is no job none that calls by HTTP');
  });
});
