import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ioredisClient } from '../../src/shared/adapters/ioredis.ts';
import { checkRedis, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { pause } from '../../src/shared/waiting.ts';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts';
import { type Note, note, recordStoreContract } from './record-store.ts';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster.close());

const clients = {
  ioredis: () => new Redis(inject('redisUrl')),
  'ioredis cluster': () => new Cluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }))),
};

for (const [name, connect] of Object.entries(clients)) {
  recordStoreContract(name, async () => {
    const client = connect();
    return {
      store: redisRecordStore<Note>(ioredisClient(client), `ptk:ioredis-${process.pid}:`),
      pass: (ms) => pause(system.clock, ms),
      close: async () => void (await client.quit()),
    };
  });
}

describe.each(Object.keys(clients) as (keyof typeof clients)[])('%s', (name) => {
  test('leaves a time to live, under the wire name, and is checked like a client of the redis package', async () => {
    const client = clients[name]();
    const store = redisRecordStore<Note>(ioredisClient(client), 'ptk:dedup:');
    await store.put('billing~io', note('r'), 'absent', 60_000);
    await store.put('billing~io', note('r', 2), '1.r', 60_000);
    expect(await client.pttl('ptk:dedup:billing:io')).toBeGreaterThan(50_000);
    expect(await checkRedis(ioredisClient(client), 'ptk:dedup:')).toBe('noeviction');
    await client.del('ptk:dedup:billing:io');
    await client.quit();
  });
});

test('a cluster behind ioredis has keys on every node', async () => {
  for (const keys of await cluster.sizes()) expect(keys).toBeGreaterThan(0);
});
