import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { redisDoneCache } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { type DoneCache, twoTierRecordStore } from '../../src/shared/adapters/two-tier.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import type { Log } from '../../src/shared/ports.ts';
import { ack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { dedupRecord } from '../support/dedup-records.ts';
import { manualSystem, settled } from '../support/manual-system.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';

const databases = await firestoreDatabases();
const connect = (url: string) =>
  createClient({ url, socket: { reconnectStrategy: 20 } })
    // Without a listener a broken connection would end the process.
    .on('error', () => undefined)
    .connect();

describe('two tiers under dedup', () => {
  let redis: RedisServer;
  let client: Awaited<ReturnType<typeof connect>>;
  beforeAll(async () => {
    redis = await startRedisServer();
    client = await connect(redis.url);
  });
  afterAll(async () => {
    client.destroy();
    await redis.kill();
  });

  let consumers = 0;
  /** Two workers of one consumer; what happens while the first handles a message is given. */
  function workers(meanwhile: () => Promise<unknown>) {
    const consumer = `c-${++consumers}`;
    const truth = firestoreRecordStore<DedupRecord>(databases.open().client(), system.clock, 'ptk-dedup');
    const store = twoTierRecordStore({ fast: redisDoneCache(client, 'ptk:done:'), truth, system, log: silentLog });
    const runs: string[] = [];
    const worker = (name: string) =>
      createDedup({ consumer, store, system, log: silentLog })(async () => {
        runs.push(name);
        await meanwhile();
      });
    const message = testMessage({ attributes: { 'ptk-key': 'k' } });
    const [first, second] = [worker('first'), worker('second')];
    const context = () => ({ signal: new AbortController().signal });
    return { runs, first: () => first(message, context()), second: () => second(message, context()) };
  }

  test('FLUSHALL while a message is handled, and after it, makes no second effect', async () => {
    const { runs, first, second } = workers(() => client.flushAll());
    expect(await first()).toEqual(ack('processed'));
    expect(await second()).toEqual(ack('duplicate'));
    await client.flushAll();
    expect(await second()).toEqual(ack('duplicate'));
    expect(runs).toEqual(['first']);
  });

  test('a copy that comes while the first is handled is not acked, whatever Redis has lost', async () => {
    const early: unknown[] = [];
    const { runs, first, second } = workers(async () => {
      await client.flushAll();
      early.push(await second());
    });
    expect(await first()).toEqual(ack('processed'));
    expect(early).toMatchObject([{ kind: 'nack', reason: 'inProgress' }]);
    expect(runs).toEqual(['first']);
  });

  test('Redis dies while a message is handled: it is processed, its copies are duplicates, and Redis comes back empty', async () => {
    const { runs, first, second } = workers(() => redis.kill());
    expect(await first()).toEqual(ack('processed'));
    expect(await second()).toEqual(ack('duplicate'));
    const ready = new Promise<void>((resolve) => client.once('ready', resolve));
    await redis.restart();
    await ready;
    expect(await second()).toEqual(ack('duplicate'));
    expect(runs).toEqual(['first']);
  });

  test('what stands in Redis under the key and is no record is passed over', async () => {
    const { runs, first, second } = workers(async () => undefined);
    await client.flushAll();
    expect(await first()).toEqual(ack('processed'));
    for (const key of await client.keys('ptk:done:*')) await client.set(key, 'done');
    expect(await second()).toEqual(ack('duplicate'));
    expect(runs).toEqual(['first']);
  });
});

describe('a fast tier that fails', () => {
  const never = new Promise<never>(() => {});
  const refuse = () => Promise.reject(new Error('connection lost'));
  const claim = dedupRecord({ rev: 1 });

  function under(fast: DoneCache) {
    const machine = manualSystem();
    const warnings: unknown[] = [];
    const log: Log = { ...silentLog, warn: (fields) => void warnings.push(fields) };
    const truth = memoryRecordStore<DedupRecord>(machine.clock);
    return { machine, warnings, truth, store: twoTierRecordStore({ fast, truth, system: machine, log }) };
  }

  test('by an error is logged once a minute, and the truth goes on', async () => {
    const { machine, warnings, store } = under({ get: refuse, keep: refuse });
    for (const key of ['a', 'b', 'c']) {
      const put = (await store.put(key, claim, 'absent', 1_000)) as { version: string };
      expect(await store.put(key, { ...claim, rev: 2, state: 'failed' }, put.version, 1_000)).toHaveProperty('version');
    }
    expect(warnings).toEqual([{ call: 'get', reason: 'connection lost' }]);
    await machine.time.advance(59_999);
    await store.put('d', claim, 'absent', 1_000);
    expect(warnings).toHaveLength(1);
    await machine.time.advance(1);
    await store.put('e', claim, 'absent', 1_000);
    expect(warnings).toHaveLength(2);
  });

  test('by silence holds up a claim for 250 ms, and an end or a failure for as long', async () => {
    const { machine, store } = under({ get: () => never, keep: () => never });
    const timed = async <T>(work: Promise<T>) => {
      const fromMs = machine.clock.monotonicMs();
      const result = await settled(machine, work);
      return { result, ms: machine.clock.monotonicMs() - fromMs };
    };
    const claimed = await timed(store.put('k', claim, 'absent', 1_000));
    expect(claimed).toMatchObject({ result: { version: expect.any(String) }, ms: 250 });
    const { version } = claimed.result as { version: string };
    expect(await timed(store.put('k', { ...claim, rev: 2, state: 'failed' }, version, 1_000))).toMatchObject({ ms: 250 });
  });

  test('by a record of a format that this version does not read is passed over', async () => {
    const record = { ...claim, v: 2, state: 'done' } as unknown as DedupRecord;
    const stored = { record, version: '1.r', writtenAtMs: 0, nowMs: 1 };
    const { store } = under({ get: async () => ({ nowMs: 1, stored }), keep: async () => {} });
    expect(await store.put('k', claim, 'absent', 1_000)).toHaveProperty('version');
  });

  test.each([
    [59_999, 'fast'],
    [60_000, '1'],
  ])('is believed until the ttl of a record is over, by its own clock: after %d ms the version is "%s"', async (ageMs, version) => {
    const stored = { record: { ...claim, state: 'done' as const, ttlMs: 60_000 }, version: '1.r', writtenAtMs: 7, nowMs: 7 + ageMs };
    const { store } = under({ get: async () => ({ nowMs: stored.nowMs, stored }), keep: async () => {} });
    const answer = await store.put('k', claim, 'absent', 1_000);
    expect('version' in answer ? answer.version : answer.conflict?.version).toBe(version);
  });

  test.each([0, 10_001, 1.5, Number.NaN])('fastTimeoutMs %d is refused at start', (fastTimeoutMs) => {
    const parts = { fast: { get: refuse, keep: refuse }, truth: memoryRecordStore<DedupRecord>(system.clock), system, log: silentLog };
    expect(() => twoTierRecordStore({ ...parts, fastTimeoutMs })).toThrow(`fastTimeoutMs is ${fastTimeoutMs}`);
  });
});
