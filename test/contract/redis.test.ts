import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { checkRedis, type RedisClient, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { pause } from '../../src/shared/waiting.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { startRedisServer, startValkeyServer } from '../support/redis-server.ts';
import { type Note, note, recordStoreContract } from './record-store.ts';

const connect = (url = inject('redisUrl')) => createClient({ url }).connect();
const valkey = await startValkeyServer();
afterAll(() => valkey?.kill());

function contractOn(name: string, url: () => string): void {
  recordStoreContract(name, async () => {
    const client = await connect(url());
    return {
      store: redisRecordStore<Note>(client, `ptk:test-${process.pid}:`),
      pass: (ms) => pause(system.clock, ms),
      close: async () => void (await client.close()),
    };
  });
}

contractOn('redis', () => inject('redisUrl'));
if (valkey) contractOn('valkey', () => valkey.url);
else console.log('RecordStore on Valkey is not run: no valkey-server on PATH, and apt offers no package of it.');

describe('redisRecordStore', () => {
  let client: Awaited<ReturnType<typeof connect>>;
  beforeAll(async () => {
    client = await connect();
  });
  afterAll(() => client.close());

  test('every write leaves a key with a time to live, under the wire name', async () => {
    const store = redisRecordStore<Note>(client, 'ptk:dedup:');
    await store.put('billing~abc', note('r'), 'absent', 5_000);
    expect(await client.pTTL('ptk:dedup:billing:abc')).toBeGreaterThan(4_000);
    await store.put('billing~abc', note('r', 2), '1.r', 9_000);
    expect(await client.pTTL('ptk:dedup:billing:abc')).toBeGreaterThan(8_000);
    await store.put('billing~abc', note('r', 3), '2.r', 'forever');
    expect(await client.pTTL('ptk:dedup:billing:abc')).toBe(-1);
    await client.del('ptk:dedup:billing:abc');
  });

  test('a claim, a renewal, an end and a failure each leave a time to live', async () => {
    const store = redisRecordStore<DedupRecord>(client, 'ptk:ttl:');
    const left: number[] = [];
    const watched: typeof store = {
      get: store.get,
      async put(key, ...rest) {
        const result = await store.put(key, ...rest);
        left.push(await client.pTTL(`ptk:ttl:${key.replace('~', ':')}`));
        return result;
      },
    };
    const parts = { consumer: 'c', store: watched, system, log: silentLog, options: { leaseMs: 100, ttlSeconds: 60 } };
    const context = { signal: new AbortController().signal };
    const deliver = createDedup(parts)(async ({ attributes }) => {
      const claimed = left.length;
      await expect.poll(() => left.length).toBeGreaterThan(claimed);
      if (attributes['ptk-key'] === 'fails') throw new Error('the handler fails');
    });
    for (const key of ['ends', 'fails']) await deliver(testMessage({ attributes: { 'ptk-key': key } }), context);
    expect(left.length).toBeGreaterThanOrEqual(6);
    for (const ttlMs of left) expect(ttlMs).toBeGreaterThan(50_000);
  });

  test('the claim of one key takes one round trip, and so does a duplicate', async () => {
    const commands: string[] = [];
    const counted: RedisClient = {
      isOpen: true,
      eval(script, options) {
        commands.push('eval');
        return client.eval(script, options);
      },
      evalSha(sha1, options) {
        commands.push('evalSha');
        return client.evalSha(sha1, options);
      },
    };
    const store = redisRecordStore<Note>(counted, 'ptk:trips:');
    await client.scriptFlush();
    await store.put('a', note('r'), 'absent', 60_000);
    await store.put('b', note('r'), 'absent', 60_000);
    await store.put('b', note('s'), 'absent', 60_000);
    expect(commands).toEqual(['evalSha', 'eval', 'evalSha', 'evalSha']);
  });
});

test('a record whose time to live somebody took away is unreadable: its age cannot be told, so nobody runs it again', async () => {
  const client = await connect();
  const store = redisRecordStore<Note>(client, 'ptk:age:');
  await store.put('k', note('r'), 'absent', 60_000);
  await client.persist('ptk:age:k');
  await expect(store.get('k')).rejects.toMatchObject({
    code: 'RECORD_UNREADABLE',
    message: /ptk:age:k holds a value whose age cannot be told/,
  });
  await expect(store.put('k', note('s'), 'absent', 60_000)).rejects.toMatchObject({ code: 'RECORD_UNREADABLE' });
  await client.del('ptk:age:k');
  await client.close();
});

describe('checkRedis', () => {
  test('tells the eviction policy of the server', async () => {
    const server = await startRedisServer('--maxmemory-policy', 'volatile-lru');
    const client = await connect(server.url);
    expect(await checkRedis(client, 'ptk:dedup:')).toBe('volatile-lru');
    await client.configSet('maxmemory-policy', 'noeviction');
    expect(await checkRedis(client, 'ptk:dedup:')).toBe('noeviction');
    await client.sendCommand(['ACL', 'SETUSER', 'default', '-info']);
    expect(await checkRedis(client, 'ptk:dedup:')).toBeUndefined();
    client.destroy();
    await server.kill();
  });

  test('refuses a key that has no time to live', async () => {
    const client = await connect();
    await redisRecordStore<Note>(client, 'ptk:kept:').put('probe', note('r'), 'absent', 'forever');
    await expect(checkRedis(client, 'ptk:kept:')).rejects.toMatchObject({ code: 'INVALID_SETTINGS', message: /ptk:kept:probe .* -1 ms/ });
    await client.del('ptk:kept:probe');
    await client.close();
  });
});
