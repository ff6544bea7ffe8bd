import { createClient } from 'redis';
import { describe, expect, inject, test } from 'vitest';
import { redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { pause } from '../../src/shared/waiting.ts';
import { type Note, recordStoreContract } from './record-store.ts';

const connect = () => createClient({ url: inject('redisUrl') }).connect();

recordStoreContract('redis', async () => {
  const client = await connect();
  await client.flushDb();
  return {
    store: redisRecordStore<Note>(client, 'ptk:test:'),
    pass: (ms) => pause(system.clock, ms),
    close: async () => void (await client.close()),
  };
});

describe('redisRecordStore', () => {
  test('every write leaves a key with a time to live, under the wire name', async () => {
    const client = await connect();
    const store = redisRecordStore<Note>(client, 'ptk:dedup:');
    const record: Note = { rev: 1, runId: 'r', text: '', seenAtMs: 1, nested: null };
    await store.put('billing~abc', record, 'absent', 5_000);
    expect(await client.pTTL('ptk:dedup:billing:abc')).toBeGreaterThan(4_000);
    await store.put('billing~abc', { ...record, rev: 2 }, '1.r', 9_000);
    expect(await client.pTTL('ptk:dedup:billing:abc')).toBeGreaterThan(8_000);
    await client.close();
  });

  test('a server that is gone is STORE_UNAVAILABLE', async () => {
    const client = await connect();
    await client.close();
    await expect(redisRecordStore<Note>(client, 'ptk:test:').get('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});
