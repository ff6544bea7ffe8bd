import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkRedis, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { pause } from '../../src/shared/waiting.ts';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts';
import { type Note, note, recordStoreContract } from './record-store.ts';

let redis: RedisCluster;
const connect = () => createCluster({ rootNodes: redis.nodes.map(({ url }) => ({ url })) }).connect();
beforeAll(async () => {
  redis = await startRedisCluster();
});
afterAll(() => redis.close());

recordStoreContract('redis cluster', async () => {
  const cluster = await connect();
  return {
    store: redisRecordStore<Note>(cluster, 'ptk:test:'),
    pass: (ms) => pause(system.clock, ms),
    close: async () => void (await cluster.close()),
  };
});

describe('redisRecordStore on a cluster', () => {
  test('has its keys on every node', async () => {
    for (const keys of await redis.sizes()) expect(keys).toBeGreaterThan(0);
  });

  test('goes on with a node that has forgotten the scripts', async () => {
    const cluster = await connect();
    const store = redisRecordStore<Note>(cluster, 'ptk:forgotten:');
    const keys = Array.from({ length: 20 }, (_, index) => `c~${index}`);
    for (const key of keys) await store.put(key, note('r'), 'absent', 60_000);
    await redis.forgetScripts();
    for (const key of keys) expect(await store.put(key, note('r', 2), '1.r', 60_000)).toEqual({ version: '2.r' });
    await cluster.close();
  });

  test('leaves every key with a time to live, and is checked like a single server', async () => {
    const cluster = await connect();
    const store = redisRecordStore<Note>(cluster, 'ptk:dedup:');
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
      await store.put(`c~${key}`, note('r'), 'absent', 60_000);
      await store.put(`c~${key}`, note('r', 2), '1.r', 60_000);
      expect(await cluster.pTTL(`ptk:dedup:c:${key}`)).toBeGreaterThan(50_000);
    }
    expect(await checkRedis(cluster, 'ptk:dedup:')).toBe('noeviction');
    await cluster.close();
  });
});
