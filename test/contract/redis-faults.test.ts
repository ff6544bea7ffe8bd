import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import type { Message } from '../../src/shared/message.ts';
import type { Revised } from '../../src/shared/ports.ts';
import { ack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { type FaultyRedis, startFaultyRedis } from '../support/redis-faults.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';

type Client = Awaited<ReturnType<typeof connect>>;

const connect = (url: string) =>
  createClient({ url })
    // Without a listener a broken connection would end the process.
    .on('error', () => undefined)
    .connect();
/** One try to own a key for so long; answers the owner that is there, or nil to the winner. */
const claim = (client: Client, key: string, token: string, keepMs = 60_000) =>
  client.set(key, token, { condition: 'NX', expiration: { type: 'PX', value: keepMs }, GET: true });

/** A worker that remembers nothing itself: every delivery asks the store. */
function worker(client: Client, storeTimeoutMs = 2_000) {
  const store = redisRecordStore<DedupRecord>(client, 'ptk:dedup:');
  const runs: string[] = [];
  const handle = async ({ attributes }: Message) => void runs.push(attributes['ptk-key'] ?? '');
  const dedup = createDedup({ consumer: 'c', store, system, log: silentLog, options: { storeTimeoutMs } })(handle);
  const deliver = (key: string) => dedup(testMessage({ attributes: { 'ptk-key': key } }), { signal: new AbortController().signal });
  return { runs, deliver };
}

describe('Redis, a primary and a replica', () => {
  let redis: FaultyRedis;
  let client: Client;
  beforeAll(async () => {
    redis = await startFaultyRedis();
    client = await connect(redis.url);
  });
  afterAll(async () => {
    client.destroy();
    await redis.close();
  });

  test('G96: of 100 that set one key with NX and PX at once, one wins, and NX with GET tells the others the owner', async () => {
    const clients = await Promise.all(Array.from({ length: 10 }, () => connect(redis.url)));
    const tokens = Array.from({ length: 100 }, (_, index) => `token-${index}`);
    const owners = await Promise.all(tokens.map((token, index) => claim(clients[index % 10] ?? client, 'raced', token)));
    const winners = tokens.filter((_, index) => owners[index] === null);
    expect(winners).toHaveLength(1);
    expect(owners.filter((owner) => owner === winners[0])).toHaveLength(99);
    expect(await client.get('raced')).toBe(winners[0]);
    for (const each of clients) each.destroy();
  });

  test('G96: the end of its time frees a key, and not before', async () => {
    const takenAtMs = performance.now();
    expect(await claim(client, 'expiring', 'first', 100)).toBeNull();
    const owners: (string | null)[] = [];
    do owners.push(await claim(client, 'expiring', 'second'));
    while (owners.at(-1) !== null);
    expect(performance.now() - takenAtMs).toBeGreaterThanOrEqual(99);
    expect(new Set(owners.slice(0, -1))).toEqual(new Set(['first']));
    expect(await client.get('expiring')).toBe('second');
  });

  test('G96: an owner whose answer was lost finds its token, and another finds that it is not its own', async () => {
    redis.loseNextAnswer();
    await expect(claim(client, 'lost', 'mine')).rejects.toThrow();
    expect(await claim(client, 'lost', 'mine')).toBe('mine');
    expect(await claim(client, 'lost', 'theirs')).toBe('mine');
  });

  test('G96: dedup runs a message once although the answer to its claim is lost, or the one to its end', async () => {
    const { runs, deliver } = worker(client);
    redis.loseNextAnswer();
    expect(await deliver('claimed')).toEqual(ack('processed'));
    expect(await deliver('claimed')).toEqual(ack('duplicate'));

    const store = redisRecordStore<DedupRecord>(client, 'ptk:dedup:');
    const ended = createDedup({ consumer: 'c', store, system, log: silentLog })(async () => {
      runs.push('ended');
      redis.loseNextAnswer();
    });
    const message = testMessage({ attributes: { 'ptk-key': 'ended' } });
    expect(await ended(message, { signal: new AbortController().signal })).toEqual(ack('processed'));
    expect(await deliver('ended')).toEqual(ack('duplicate'));
    expect(runs).toEqual(['claimed', 'ended']);
  });

  test('G96: a failover loses the last writes: their messages run again when they come again, those before do not', async () => {
    const { runs, deliver } = worker(client);
    await deliver('before');
    await redis.holdReplication();
    for (const key of ['last-1', 'last-2']) expect(await deliver(key)).toEqual(ack('processed'));
    const ready = new Promise<void>((resolve) => client.once('ready', resolve));
    await redis.failOver();
    await ready;
    const verdicts = [];
    for (const key of ['before', 'last-1', 'last-2', 'last-1']) verdicts.push((await deliver(key)).reason);
    expect(verdicts).toEqual(['duplicate', 'processed', 'processed', 'duplicate']);
    expect(runs).toEqual(['before', 'last-1', 'last-2', 'last-1', 'last-2']);
  });
});

describe('Redis, out of memory', () => {
  const kilobytes10 = 'x'.repeat(10_240);
  let server: RedisServer;
  let client: Client;
  beforeAll(async () => {
    server = await startRedisServer();
    client = await connect(server.url);
  });
  afterAll(async () => {
    client.destroy();
    await server.kill();
  });

  test('G96: volatile-lru evicts what has a time to live, dedup’s records among it, and a message that comes again runs again', async () => {
    const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    await client.configSet({ 'maxmemory-policy': 'volatile-lru', maxmemory: String(used + 1024 * 1024) });
    const { runs, deliver } = worker(client);
    await deliver('evicted');
    await redisRecordStore<Revised>(client, 'kept:').put('k', { rev: 1, runId: 'r' }, 'absent', 'forever');
    const [recordKey = ''] = await client.keys('ptk:dedup:*');
    expect(recordKey).not.toBe('');
    for (let filler = 0; (await client.exists(recordKey)) === 1; filler++) {
      await client.set(`filler-${filler}`, kilobytes10, { expiration: { type: 'EX', value: 3_600 } });
    }
    expect(await client.exists('kept:k')).toBe(1);
    expect(await deliver('evicted')).toEqual(ack('processed'));
    expect(runs).toEqual(['evicted', 'evicted']);
    await client.configSet('maxmemory', '0');
  });

  test('G96: noeviction refuses the claim instead: the message does not run and comes again; a duplicate is still known', async () => {
    const { runs, deliver } = worker(client, 200);
    await deliver('early');
    await client.configSet({ 'maxmemory-policy': 'noeviction', maxmemory: '1' });
    await expect(client.set('any', 'x')).rejects.toThrow('OOM');
    expect(await deliver('late')).toMatchObject({ kind: 'nack' });
    expect(await deliver('early')).toEqual(ack('duplicate'));
    expect(runs).toEqual(['early']);
    await client.configSet('maxmemory', '0');
    expect(await deliver('late')).toEqual(ack('processed'));
    expect(runs).toEqual(['early', 'late']);
  });
});
