import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { ack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { gate } from '../support/manual-system.ts';

const databases = await firestoreDatabases();
let redis: Awaited<ReturnType<typeof connectRedis>>;
const connectRedis = () => createClient({ url: inject('redisUrl') }).connect();
const stores: Partial<Record<'memory' | 'redis' | 'firestore', RecordStore<DedupRecord>>> = {};

beforeAll(async () => {
  redis = await connectRedis();
  stores.memory = memoryRecordStore(system.clock);
  stores.redis = redisRecordStore(redis, 'ptk:dedup-stores:');
  stores.firestore = firestoreRecordStore(databases.open().client(), system.clock, 'ptk-dedup');
});

afterAll(async () => {
  await redis.close();
});

/** Each worker has its own memory of what is running, as a process has. */
function worker(store: RecordStore<DedupRecord> | undefined, leaseMs = 5_000) {
  if (!store) throw new Error('the store is not connected');
  return createDedup({ consumer: 'c', store, system, log: silentLog, options: { leaseMs, ttlSeconds: 60 } });
}

const context = () => ({ signal: new AbortController().signal });
const keyed = (key: string) => testMessage({ attributes: { 'ptk-key': `${key}-${performance.now()}` } });

describe.each(['memory', 'redis', 'firestore'] as const)('dedup on %s', (name) => {
  test('of 50 deliveries at once on 10 workers one runs, and none of the others is acked before it is done', async () => {
    const message = keyed('race');
    const [entered, hold] = [gate(), gate()];
    let runs = 0;
    let isDone = false;
    const verdicts: { kind: string; beforeDone: boolean }[] = [];
    const handle = async () => {
      runs += 1;
      entered.open();
      await hold.opened;
    };
    const workers = Array.from({ length: 10 }, () => worker(stores[name])(handle));
    const deliveries = workers.flatMap((deliver) => Array.from({ length: 5 }, () => deliver(message, context())));
    const watched = deliveries.map(async (delivery) => {
      const { kind } = await delivery;
      verdicts.push({ kind, beforeDone: !isDone });
    });
    await entered.opened;
    isDone = true;
    hold.open();
    await Promise.all(watched);
    expect(runs).toBe(1);
    expect(verdicts.filter(({ kind, beforeDone }) => kind === 'ack' && beforeDone)).toEqual([]);
    expect(await worker(stores[name])(handle)(message, context())).toEqual(ack('duplicate'));
    expect(runs).toBe(1);
  });

  test('a run whose lease is over loses the key to the next one, and its late end changes nothing', async () => {
    const message = keyed('outlived');
    const [entered, first, taken] = [gate(), gate(), gate()];
    // The event loop of the first is blocked: it renews nothing.
    const silent = stores[name];
    if (!silent) throw new Error('the store is not connected');
    const blocked: RecordStore<DedupRecord> = {
      get: (key) => silent.get(key),
      put: async (key, record, expected, keepMs) => {
        if (record.state === 'running' && expected !== 'absent') await taken.opened;
        return silent.put(key, record, expected, keepMs);
      },
    };
    const run = () => {
      entered.open();
      return first.opened;
    };
    const outlived = worker(blocked, 300)(run)(message, context());
    await entered.opened;
    const next = async (): Promise<string> => {
      const verdict = await worker(silent, 300)(async () => 'second')(message, context());
      return verdict.kind === 'nack' ? next() : verdict.reason;
    };
    expect(await next()).toBe('processed');
    taken.open();
    first.open();
    expect(await outlived).toMatchObject({ kind: 'nack', reason: 'leaseLost' });
    expect(await worker(silent)(async () => 'third')(message, context())).toEqual(ack('duplicate'));
  });
});

describe('dedup on firestore, when the service applies a commit and its answer is lost', () => {
  test.each([
    ['the claim', 1],
    ['claim and end', 2],
  ])('%s: the client reports its own write as a conflict, and the message still runs once', async (_, times) => {
    databases.emulator.faults.add({ kind: 'answer-lost', rpc: 'Firestore.Commit', times });
    const message = keyed('lost');
    let runs = 0;
    const handle = async () => {
      runs += 1;
    };
    expect(await worker(stores.firestore)(handle)(message, context())).toEqual(ack('processed'));
    expect(await worker(stores.firestore)(handle)(message, context())).toEqual(ack('duplicate'));
    expect(runs).toBe(1);
    expect(databases.emulator.faults.counts()['answer-lost']).toBeGreaterThanOrEqual(times);
  });
});
