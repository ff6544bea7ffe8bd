import { createClient } from 'redis';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { redisDoneCache } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { type DoneCache, twoTierRecordStore } from '../../src/shared/adapters/two-tier.ts';
import { type DedupRecord, decideRedrive } from '../../src/shared/dedup/decide.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { pause } from '../../src/shared/waiting.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { dedupRecord } from '../support/dedup-records.ts';
import { type Gate, gate } from '../support/manual-system.ts';

type Client = Awaited<ReturnType<typeof connect>>;
const connect = () => createClient({ url: inject('redisUrl') }).connect();
const prefix = `ptk:order-${process.pid}:`;
const keepMs = 60_000;

let client: Client;
let fast: DoneCache;
let truth: RecordStore<DedupRecord>;
let asked: string[];
let store: RecordStore<DedupRecord>;
let keys = 0;
let key: string;

beforeAll(async () => {
  client = await connect();
});
afterAll(() => client.close());
beforeEach(() => {
  key = `c~${++keys}`;
  fast = redisDoneCache(client, prefix);
  const memory = memoryRecordStore<DedupRecord>(system.clock);
  asked = [];
  truth = {
    get: memory.get,
    put(...args) {
      asked.push(args[1].state);
      return memory.put(...args);
    },
  };
  store = worker(fast);
});

const worker = (cache: DoneCache) => twoTierRecordStore({ fast: cache, truth, system, log: silentLog, fastTimeoutMs: 5_000 });
/** A worker whose writes to the fast tier are held up. */
const slowWorker = (held: Gate) => worker({ ...fast, keep: (...args) => held.opened.then(() => fast.keep(...args)) });

const record = (runId: string, rev: number, changes: Partial<DedupRecord> = {}) => dedupRecord({ runId, rev, ...changes });
const claim = (by: RecordStore<DedupRecord>, runId: string, changes: Partial<DedupRecord> = {}) =>
  by.put(key, record(runId, 1, changes), 'absent', keepMs);
const versionOf = (result: object) => (result as { version: string }).version;

/** Claims and ends a key. */
async function finish(by: RecordStore<DedupRecord>, runId: string, changes: Partial<DedupRecord> = {}): Promise<string> {
  const version = versionOf(await claim(by, runId, changes));
  return versionOf(await by.put(key, record(runId, 2, { state: 'done', ...changes }), version, keepMs));
}

/** What an operator does with a dead letter, and whether its message is to run. */
async function redrive(by: RecordStore<DedupRecord>, fingerprint: string): Promise<boolean> {
  const current = await by.get(key);
  const decision = decideRedrive(current, { fingerprint, runId: `operator-${fingerprint}`, as: 'accept-new' });
  if (decision.kind !== 'write' || !current) return decision.kind === 'publish';
  expect(await by.put(key, decision.write, current.version, keepMs)).toHaveProperty('version');
  return decision.runs;
}

describe('two tiers', () => {
  test('a finished key is known without the truth, and a key in progress is not', async () => {
    const version = versionOf(await claim(store, 'a'));
    expect(await claim(store, 'b')).toMatchObject({ conflict: { record: { runId: 'a', state: 'running' } } });
    await store.put(key, record('a', 2, { state: 'done' }), version, keepMs);
    asked = [];
    expect(await claim(store, 'c')).toMatchObject({ conflict: { record: { runId: 'a', state: 'done' } } });
    expect(asked).toEqual([]);
  });

  test('a worker that stops between truth and fast tier leaves a duplicate to the truth', async () => {
    const held = gate();
    const slow = slowWorker(held);
    const version = versionOf(await claim(slow, 'a'));
    const end = slow.put(key, record('a', 2, { state: 'done' }), version, keepMs);
    await expect.poll(() => asked).toContain('done');
    expect(await claim(store, 'b')).toMatchObject({
      conflict: { record: { runId: 'a', state: 'done' }, version: expect.not.stringMatching('fast') },
    });
    held.open();
    await end;
    asked = [];
    await claim(store, 'c');
    expect(asked).toEqual([]);
  });

  test('an end that the truth refuses never reaches the fast tier', async () => {
    const version = versionOf(await claim(store, 'outlived', { leaseMs: 1 }));
    const taken = versionOf(await store.put(key, record('second', 2), version, keepMs));
    expect(await store.put(key, record('outlived', 2, { state: 'done' }), version, keepMs)).toHaveProperty('conflict');
    expect((await fast.get(key)).stored).toBeUndefined();
    await store.put(key, record('second', 3, { state: 'done' }), taken, keepMs);
    expect((await fast.get(key)).stored?.record.runId).toBe('second');
  });

  test('the version of what the fast tier told writes nothing', async () => {
    await finish(store, 'a');
    const { conflict } = (await claim(store, 'b')) as { conflict: { version: string } };
    asked = [];
    const stolen = await store.put(key, record('b', 3), conflict.version, keepMs);
    expect(asked).toEqual([]);
    expect(stolen).toMatchObject({ conflict: { record: { runId: 'a', state: 'done' } } });
    expect((await truth.get(key))?.record.runId).toBe('a');
  });

  test('other content under a finished key is for the truth to judge', async () => {
    await finish(store, 'a');
    asked = [];
    expect(await claim(store, 'b', { fingerprint: 'other' })).toMatchObject({ conflict: { record: { fingerprint: 'f' } } });
    expect(asked).toEqual(['running']);
  });

  test('an operator who was with the truth alone is not overruled by what the fast tier remembers', async () => {
    await finish(store, 'a');
    expect(await redrive(truth, 'new')).toBe(true);
    expect(await claim(store, 'b', { fingerprint: 'new' })).toMatchObject({ conflict: { record: { state: 'failed' } } });
  });

  test('a redrive is not undone by a worker that comes late to the fast tier with an end from before', async () => {
    const held = gate();
    const slow = slowWorker(held);
    const version = versionOf(await claim(slow, 'a'));
    const late = slow.put(key, record('a', 2, { state: 'done' }), version, keepMs);
    await expect.poll(() => asked).toContain('done');
    // The operator lets other content run, and then the first one again.
    expect(await redrive(store, 'new')).toBe(true);
    expect(await redrive(store, 'f')).toBe(true);
    held.open();
    await late;
    expect((await fast.get(key)).stored?.record).toMatchObject({ state: 'failed', rev: 4 });
    expect(await claim(store, 'b')).toMatchObject({ conflict: { record: { state: 'failed', fingerprint: 'f' } } });
  });

  test('a failure forgets what the fast tier knew, and the next end is known again', async () => {
    const done = await finish(store, 'a');
    const failed = versionOf(await store.put(key, record('b', 3, { state: 'failed' }), done, keepMs));
    expect(await claim(store, 'c')).toMatchObject({ conflict: { record: { state: 'failed' } } });
    await store.put(key, record('c', 4, { state: 'done' }), failed, keepMs);
    asked = [];
    await claim(store, 'd');
    expect(asked).toEqual([]);
  });

  test('the fast tier knows a key no longer than the truth does, however late it hears of it', async () => {
    const ttlMs = 150;
    const held = gate();
    const slow = slowWorker(held);
    const version = versionOf(await claim(slow, 'a', { ttlMs }));
    const end = slow.put(key, record('a', 2, { state: 'done', ttlMs }), version, keepMs);
    await expect.poll(() => asked).toContain('done');
    await pause(system.clock, ttlMs);
    held.open();
    await end;
    expect((await fast.get(key)).stored).toBeUndefined();
  });

  test('what the fast tier keeps ends with its ttl', async () => {
    await finish(store, 'a', { ttlMs: 5_000 });
    const left = await client.pTTL(`${prefix}${key.replace('~', ':')}`);
    expect(left).toBeGreaterThan(3_000);
    expect(left).toBeLessThanOrEqual(5_000);
  });
});
