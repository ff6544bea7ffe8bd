import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, startBackend } from '../support/backend.ts';
import { type Deployed, post, pushBody, startFunction } from '../support/deployables.ts';
import { listenTo } from '../support/received.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';

const projectId = `ptk-dedup-settings-${process.pid}`;
let emulator: Backend;
let pubsub: PubSub;
let redis: RedisServer;
let sink: Server;
let env: Record<string, string>;
let folder: string;
let ran: string[] = [];
const started: Deployed[] = [];

const readOr = (path: string) => readFile(path, 'utf8').catch(() => '');
/** Killed, and started again with nothing stored. */
const emptyRedis = async () => {
  await redis.kill();
  await redis.restart();
};
const start = async (settings: Record<string, string>): Promise<Deployed> => {
  const deployed = await startFunction('dedup', { ...env, ...settings });
  started.push(deployed);
  return deployed;
};

beforeAll(async () => {
  sink = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    ran.push(Buffer.from(JSON.parse(Buffer.concat(chunks).toString()).message.data, 'base64').toString());
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
  const address = sink.address();
  [emulator, redis, folder] = await Promise.all([startBackend(), startRedisServer(), mkdtemp(join(tmpdir(), 'dedup-'))]);
  env = {
    ...emulator.env,
    GOOGLE_CLOUD_PROJECT: projectId,
    CONSUMER: 'c',
    SINK: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`,
    REDIS_URL: redis.url,
    DEDUP_STORE_TIMEOUT_MS: '500',
  };
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
});

afterAll(async () => {
  await Promise.all(started.map((deployed) => deployed.kill()));
  await Promise.all([pubsub.close(), redis.kill(), rm(folder, { recursive: true })]);
  sink.closeAllConnections();
  sink.close();
  await emulator.close();
});

describe('functions/dedup', () => {
  test('STORE=two-tier with DEDUP_KEY=payload:$.id: what has one id runs once, and still once when Redis forgets', async () => {
    ran = [];
    const dedup = await start({ STORE: 'two-tier', DEDUP_KEY: 'payload:$.id', CONSUMER: 'two' });
    expect(await post(dedup.url, pushBody({}, '{"id":7,"a":1}', 'm1'))).toBe(204);
    expect(await post(dedup.url, pushBody({}, '{"a":1, "id":7}', 'm2'))).toBe(204);
    await emptyRedis();
    expect(await post(dedup.url, pushBody({}, '{"id":7,"a":1}', 'm3'))).toBe(204);
    expect(ran).toEqual(['{"id":7,"a":1}']);
  });

  test('DEDUP_MISSING_KEY: a message without the key is a dead letter, or runs', async () => {
    ran = [];
    await pubsub.createTopic('dead');
    const dead = await listenTo(pubsub, 'dead');
    const refusing = await start({ DEDUP_KEY: 'attribute:order', DEAD_LETTER_TOPIC: 'dead' });
    const running = await start({ DEDUP_KEY: 'attribute:order', DEDUP_MISSING_KEY: 'run' });
    expect(await post(refusing.url, pushBody({}, 'refused'))).toBe(204);
    expect((await dead.count(1))[0]?.attributes).toMatchObject({
      'ptk-dead-reason': 'malformed',
      'ptk-dead-detail': 'the attribute order is missing',
    });
    await dead.close();
    expect(await post(running.url, pushBody({}, 'taken'))).toBe(204);
    expect(ran).toEqual(['taken']);
  });

  test('DEDUP_MODE=shadow runs every copy and says which it would not have run', async () => {
    ran = [];
    const dedup = await start({ DEDUP_MODE: 'shadow', CONSUMER: 'shadow' });
    const body = pushBody({ 'ptk-key': 'k', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }, 'x');
    expect([await post(dedup.url, body), await post(dedup.url, body)]).toEqual([204, 204]);
    expect(ran).toEqual(['x', 'x']);
    expect(dedup.log).toContainEqual(
      expect.objectContaining({
        message: 'would not have run',
        reason: 'duplicate',
        key: 'k',
        'logging.googleapis.com/trace': `projects/${projectId}/traces/0af7651916cd43dd8448eb211c80319c`,
      }),
    );
  });

  test('SINK=topic: a number whose message ends here goes on as a tombstone', async () => {
    await pubsub.createTopic('out');
    const out = await listenTo(pubsub, 'out');
    const dedup = await start({ SINK: 'topic:out', CONSUMER: 'chained' });
    const numbered = (sequence: string) => ({ 'ptk-key': 'k', 'ptk-stream': 's', 'ptk-epoch': '1', 'ptk-seq': sequence });
    expect(await post(dedup.url, pushBody(numbered('1'), 'x', 'm1'))).toBe(204);
    expect(await post(dedup.url, pushBody(numbered('2'), 'x', 'm2'))).toBe(204);
    const [first, second] = await out.count(2);
    expect(first?.data.toString()).toBe('x');
    expect(second?.attributes).toMatchObject({ ...numbered('2'), 'ptk-tombstone': 'duplicate' });
    await out.close();
  });

  test('DEDUP_EFFECTS=external: what a killed process left is decided by the module’s reconcile, and not run', async () => {
    const [runs, asked] = [join(folder, 'runs'), join(folder, 'asked')];
    const module = join(folder, 'charge.mjs');
    await writeFile(
      module,
      `import { appendFileSync } from 'node:fs';
       export default async () => { appendFileSync(${JSON.stringify(runs)}, 'x'); await new Promise(() => {}); };
       export const reconcile = async (record) => { appendFileSync(${JSON.stringify(asked)}, record.key); return 'done'; };`,
    );
    const settings = { DEDUP_EFFECTS: 'external', SINK: `module:${module}`, CONSUMER: 'charges', DEDUP_LEASE_MS: '1000' };
    const dying = await start(settings);
    const body = pushBody({ 'ptk-key': 'charge-7' }, 'x');
    post(dying.url, body).catch(() => undefined);
    await expect.poll(() => readOr(runs)).toBe('x');
    await dying.kill();
    const next = await start(settings);
    await expect.poll(() => post(next.url, body), { timeout: 10_000 }).toBe(204);
    expect([await readOr(runs), await readOr(asked)]).toEqual(['x', 'charge-7']);
  });

  test('SUBSCRIPTION: a lease that is shorter than its ack deadline is refused at start', async () => {
    const [topic] = await pubsub.createTopic('checked');
    await topic.createSubscription('checked', { ackDeadlineSeconds: 60, pushConfig: { pushEndpoint: 'http://127.0.0.1:1/' } });
    await expect(start({ SUBSCRIPTION: 'checked', DEDUP_LEASE_MS: '59999' })).rejects.toThrow(
      /leaseMs is 59999; it must be at least 60000, the ack deadline in force/,
    );
    const fitting = await start({ SUBSCRIPTION: 'checked', DEDUP_LEASE_MS: '60000' });
    expect(fitting.log).toContainEqual(expect.objectContaining({ severity: 'WARNING', reason: expect.stringContaining('retryPolicy') }));
  });

  // The last: it leaves the others without a Redis.
  test.each([
    ['closed', 503, []],
    ['open', 204, ['x']],
  ])('DEDUP_ON_OUTAGE=%s while Redis is down answers %d', async (onOutage, status, effects) => {
    ran = [];
    await emptyRedis();
    const dedup = await start({ STORE: 'redis', DEDUP_ON_OUTAGE: onOutage, CONSUMER: onOutage });
    await redis.kill();
    expect(await post(dedup.url, pushBody({ 'ptk-key': 'k' }, 'x'))).toBe(status);
    expect(ran).toEqual(effects);
  });
});
