import { createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/cli/demo/processes.ts';
import { ioredisClient } from '../../src/shared/adapters/ioredis.ts';
import { type RedisClient, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import type { Log } from '../../src/shared/ports.ts';
import { ack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { gate } from '../support/manual-system.ts';
import { startFaultyRedis } from '../support/redis-faults.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';

const prefix = 'ptk:dedup:';
const open = (url: string, options = {}) =>
  createClient({ url, socket: { reconnectStrategy: 20 }, ...options })
    // Without a listener a broken connection would end the process.
    .on('error', () => undefined);
const isReady = (client: { once(event: 'ready', listener: () => void): unknown }) =>
  new Promise<void>((resolve) => client.once('ready', resolve));

/** A worker that remembers nothing itself, and what it tells the world. */
function worker(client: RedisClient, meanwhile: () => Promise<unknown> = async () => undefined) {
  const [told, counted, runs]: [string[], string[], string[]] = [[], [], []];
  const tell = (fields: object) => void told.push(JSON.stringify(fields));
  const log: Log = { ...silentLog, warn: tell, error: tell };
  const meter = { record: (name: string) => void counted.push(name) };
  const store = redisRecordStore<DedupRecord>(client, prefix);
  const dedup = createDedup({ consumer: 'c', store, system, log, meter, options: { storeTimeoutMs: 300 } });
  const deliver = dedup(async ({ attributes }) => {
    runs.push(attributes['ptk-key'] ?? '');
    await meanwhile();
  });
  return {
    ...{ told, counted, runs },
    deliver: (key: string) => deliver(testMessage({ attributes: { 'ptk-key': key } }), { signal: new AbortController().signal }),
  };
}

describe('Redis that cannot be asked', () => {
  const unavailable = { kind: 'nack', reason: 'storeUnavailable' };

  const node = (port: number, options = {}) => {
    const client = open(`redis://127.0.0.1:${port}`, options);
    client.connect().catch(() => undefined);
    return { client, destroy: () => client.destroy() };
  };
  const io = (port: number) => {
    const client = new Redis(port).on('error', () => undefined);
    return { client: ioredisClient(client), destroy: () => client.disconnect() };
  };
  test.each([
    ['waits for the connection', node],
    ['fails while there is none', (port: number) => node(port, { disableOfflineQueue: true })],
    ['is one of ioredis', io],
  ])('at a closed port, by a client that %s: nothing runs and nothing is acked', async (_, connect) => {
    const { client, destroy } = connect(await freePort());
    const { runs, told, deliver } = worker(client);
    expect(await Promise.all(['a', 'b', 'c'].map(deliver))).toMatchObject([unavailable, unavailable, unavailable]);
    expect(runs).toEqual([]);
    expect(told).toHaveLength(3);
    destroy();
  });

  test('while a claim waits for the connection: it ends by the client’s own timeout, and is not sent later', async () => {
    const server = await startRedisServer();
    const client = await open(server.url, { commandOptions: { timeout: 100 } }).connect();
    const store = redisRecordStore(client, prefix);
    const lost = new Promise((resolve) => client.once('reconnecting', resolve));
    await server.kill();
    await lost;
    await expect(store.put('c~late', { rev: 1, runId: 'r' }, 'absent', 60_000)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    const ready = isReady(client);
    await server.restart();
    await ready;
    expect(await store.get('c~late')).toBeUndefined();
    client.destroy();
    await server.kill();
  });

  test('that takes the connection and never answers: nothing runs and nothing is acked', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
    const port = await freePort();
    await new Promise<void>((resolve) => silent.listen(port, '127.0.0.1', resolve));
    const { client, destroy } = node(port);
    const { runs, deliver } = worker(client);
    expect(await deliver('a')).toMatchObject(unavailable);
    expect(runs).toEqual([]);
    destroy();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });

  test('that is a replica: nothing runs and nothing is acked', async () => {
    const primary = await startRedisServer();
    const replica = await startRedisServer('--replicaof', `127.0.0.1 ${primary.port}`);
    const client = await open(replica.url).connect();
    const { runs, deliver } = worker(client);
    expect(await deliver('a')).toMatchObject(unavailable);
    expect(runs).toEqual([]);
    await expect(redisRecordStore(client, prefix).put('k', { rev: 1, runId: 'r' }, 'absent', 1_000)).rejects.toThrow('READONLY');
    client.destroy();
    await Promise.all([replica.kill(), primary.kill()]);
  });
});

describe('Redis that loses a claim while its handler runs', () => {
  let server: RedisServer;
  let client: Awaited<ReturnType<ReturnType<typeof open>['connect']>>;
  beforeAll(async () => {
    server = await startRedisServer();
    client = await open(server.url).connect();
  });
  afterAll(async () => {
    client.destroy();
    await server.kill();
  });
  const keys = () => client.keys(`${prefix}*`);
  const records = async () => Promise.all((await keys()).map((key) => client.get(key)));

  test('evicted: the end is written all the same, counted and reported, and copies are duplicates', async () => {
    const { counted, told, runs, deliver } = worker(client, () => client.flushAll());
    expect(await deliver('evicted')).toEqual(ack('processed'));
    expect(counted).toContain('ptk.dedup.record_lost');
    expect(told).toEqual([expect.stringContaining('"key":"evicted"')]);
    expect(await records()).toEqual([expect.stringContaining('"state":"done"')]);
    for (const key of await keys()) expect(await client.pTTL(key)).toBeGreaterThan(0);
    expect(await deliver('evicted')).toEqual(ack('duplicate'));
    expect(runs).toEqual(['evicted']);
  });

  test.each([
    ['done', 'ends', 'leaseLost'],
    ['done', 'fails', 'failed'],
    ['failed', 'ends', 'leaseLost'],
    ['failed', 'fails', 'failed'],
    ['running', 'ends', 'leaseLost'],
    ['running', 'fails', 'failed'],
  ] as const)('evicted, then claimed by another whose record is %s: the first one %s, and changes nothing', async (state, how, reason) => {
    const key = `${state} ${how}`;
    const hold = gate();
    const found: unknown[] = [];
    const look = async () => void found.push(await records());
    const second = worker(client, async () => {
      if (state === 'failed') throw new Error('the second fails');
      if (state === 'running') await hold.opened;
    });
    let copy: Promise<unknown> = Promise.resolve();
    const first = worker(client, async () => {
      await client.flushAll();
      copy = second.deliver(key);
      if (state === 'running') await expect.poll(() => second.runs).toHaveLength(1);
      else await copy;
      await look();
      if (how === 'fails') throw new Error('the first fails');
    });
    expect(await first.deliver(key)).toMatchObject({ kind: 'nack', reason });
    await look();
    expect(found).toMatchObject([[expect.stringContaining(`"state":"${state}"`)], [expect.any(String)]]);
    expect(found[1]).toEqual(found[0]);
    expect(first.counted.includes('ptk.dedup.lease_lost')).toBe(how === 'ends');
    hold.open();
    await copy;
  });

  test('killed before the end is written: reported and not acked; empty again, the message runs once more', async () => {
    const { told, runs, deliver } = worker(client, () => (runs.length === 1 ? server.kill() : Promise.resolve()));
    expect(await deliver('killed')).toMatchObject({ kind: 'nack', reason: 'storeUnavailable' });
    expect(told.join()).toContain('gave no answer');
    const ready = isReady(client);
    await server.restart();
    await ready;
    await expect.poll(() => deliver('killed')).toMatchObject({ kind: 'ack' });
    expect(await deliver('killed')).toEqual(ack('duplicate'));
    expect(runs.length).toBeLessThanOrEqual(2);
  });

  test('failed over to a replica that lacks the claim: the end is written there, counted and reported', async () => {
    const redis = await startFaultyRedis();
    const failing = await open(redis.url).connect();
    const { counted, runs, deliver } = worker(failing, async () => {
      await redis.failOver();
      await isReady(failing);
    });
    await redis.holdReplication();
    expect(await deliver('failed over')).toEqual(ack('processed'));
    expect(counted).toContain('ptk.dedup.record_lost');
    expect(await deliver('failed over')).toEqual(ack('duplicate'));
    expect(runs).toEqual(['failed over']);
    failing.destroy();
    await redis.close();
  });
});
