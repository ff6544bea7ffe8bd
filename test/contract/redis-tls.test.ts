import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkRedis, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { pause } from '../../src/shared/waiting.ts';
import { type RedisServer, startRedisServer, startSecureRedisServer, testAuthority } from '../support/redis-server.ts';
import { type Note, note, recordStoreContract } from './record-store.ts';

let server: RedisServer;
beforeAll(async () => {
  server = await startSecureRedisServer('ptk', 'pass word');
});
afterAll(() => server.kill());

const client = (url = server.url) => createClient({ url, socket: { tls: true, ca: testAuthority, reconnectStrategy: false } });

recordStoreContract('redis over TLS as a user of its own', async () => {
  const connected = await client().connect();
  return {
    store: redisRecordStore<Note>(connected, 'ptk:test:'),
    pass: (ms) => pause(system.clock, ms),
    close: async () => void (await connected.close()),
  };
});

describe('Redis over TLS', () => {
  test('is checked like any other', async () => {
    const connected = await client().connect();
    expect(await checkRedis(connected, 'ptk:dedup:')).toBe('noeviction');
    await connected.close();
  });

  test('refuses a client without the authority, and one with another password', async () => {
    const stranger = createClient({ url: server.url, socket: { tls: true, reconnectStrategy: false } });
    await expect(stranger.on('error', () => undefined).connect()).rejects.toThrow(/certificate/);
    const guesser = client(server.url.replace('pass%20word', 'guess')).on('error', () => undefined);
    await expect(guesser.connect()).rejects.toThrow('WRONGPASS');
  });
});

test('RecordStore: redis with a password alone', async () => {
  const guarded = await startRedisServer('--requirepass', 'secret');
  const connected = await createClient({ url: guarded.url, password: 'secret' }).connect();
  const store = redisRecordStore<Note>(connected, 'ptk:test:');
  expect(await store.put('k', note('r'), 'absent', 60_000)).toEqual({ version: '1.r' });
  connected.destroy();
  await guarded.kill();
});
