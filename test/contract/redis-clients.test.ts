import { Redis } from 'ioredis';
import { createClient, createClientPool, createCluster, RESP_TYPES } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ioredisClient } from '../../src/shared/adapters/ioredis.ts';
import { checkRedis, redisDoneCache, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { note } from './record-store.ts';

const url = inject('redisUrl');

describe('a client that is none', () => {
  const io = new Redis(url);
  const node = createClient({ url });
  beforeAll(async () => void (await node.connect()));
  afterAll(async () => {
    await io.quit();
    await node.close();
  });

  const takers = {
    redisRecordStore: (client: unknown) => redisRecordStore(client as never, 'ptk:none:'),
    redisDoneCache: (client: unknown) => redisDoneCache(client as never, 'ptk:none:'),
    checkRedis: (client: unknown) => checkRedis(client as never, 'ptk:none:'),
    ioredisClient: (client: unknown) => ioredisClient(client as never),
  };
  const closed = createClient({ url });
  test.each([
    ['redisRecordStore', null, 'null'],
    ['redisRecordStore', undefined, 'undefined'],
    ['redisRecordStore', url, 'string'],
    ['redisRecordStore', { get: () => null, set: () => 'OK' }, 'object'],
    ['redisRecordStore', io, 'ioredisClient(client)'],
    ['redisDoneCache', io, 'ioredisClient(client)'],
    ['checkRedis', io, 'ioredisClient(client)'],
    ['redisRecordStore', closed, 'await its connect()'],
    ['redisRecordStore', createCluster({ rootNodes: [{ url }] }), 'await its connect()'],
    ['redisRecordStore', Promise.resolve(closed), 'await it'],
    ['ioredisClient', null, 'null'],
    ['ioredisClient', {}, 'object'],
    ['ioredisClient', node, 'pass it to redisRecordStore as it is'],
  ] as const)('is refused at once by %s, which says what to pass (%#)', async (taker, client, told) => {
    const take = async () => takers[taker](client);
    await expect(take()).rejects.toMatchObject({ code: 'INVALID_SETTINGS', message: expect.stringContaining(told) });
    await expect(take()).rejects.toThrow(`${taker === 'checkRedis' ? 'redisRecordStore' : taker} takes a`);
  });

  test('of ioredis that is closed for good is refused', async () => {
    const ended = new Redis(url);
    const end = new Promise((resolve) => ended.once('end', resolve));
    await ended.quit();
    await end;
    expect(() => ioredisClient(ended)).toThrow('closed');
  });
});

describe('what a client makes of an answer', () => {
  const typeMapping = { [RESP_TYPES.BLOB_STRING]: Buffer };
  test.each([
    ['RESP 2', () => createClient({ url, RESP: 2 }).connect()],
    ['RESP 3', () => createClient({ url, RESP: 3 }).connect()],
    ['RESP 2 and Buffers', () => createClient({ url, RESP: 2, commandOptions: { typeMapping } }).connect()],
    ['RESP 3 and Buffers', () => createClient({ url, RESP: 3, commandOptions: { typeMapping } }).connect()],
    ['numbers as text', () => createClient({ url, commandOptions: { typeMapping: { [RESP_TYPES.NUMBER]: String } } }).connect()],
  ])('%s: won, lost, read, absent, evicted', async (name, connect) => {
    const client = await connect();
    const store = redisRecordStore<ReturnType<typeof note>>(client, `ptk:reply-${process.pid}:`);
    const key = `c~${name}`;
    expect(await store.get(key)).toBeUndefined();
    expect(await store.put(key, note('a', 1, 'grüße'), 'absent', 60_000)).toEqual({ version: '1.a' });
    expect(await store.put(key, note('b'), 'absent', 60_000)).toMatchObject({
      conflict: { record: note('a', 1, 'grüße'), version: '1.a' },
    });
    expect(await store.get(key)).toMatchObject({ record: note('a', 1, 'grüße') });
    await client.del(`ptk:reply-${process.pid}:c:${name}`);
    expect(await store.put(key, note('a', 2), '1.a', 60_000)).toEqual({ conflict: undefined });
    expect(await checkRedis(client, `ptk:reply-${process.pid}:`)).toBe('noeviction');
    await client.close();
  });

  test('a pool of clients does as well as one', async () => {
    const pool = createClientPool({ url });
    await pool.connect();
    const store = redisRecordStore<ReturnType<typeof note>>(pool, `ptk:pool-${process.pid}:`);
    const results = await Promise.all(Array.from({ length: 20 }, (_, run) => store.put('c~k', note(`r${run}`), 'absent', 60_000)));
    expect(results.filter((result) => 'version' in result)).toHaveLength(1);
    await pool.close();
  });

  test.each([null, 'OK', undefined, 1, []])('%j for a script is an error, and no claim', async (answer) => {
    const store = redisRecordStore({ isOpen: true, eval: async () => answer, evalSha: async () => answer }, 'ptk:odd:');
    await expect(store.put('k', note('r'), 'absent', 60_000)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});
