import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { redisDoneCache, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { twoTierRecordStore } from '../../src/shared/adapters/two-tier.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { checkStore } from '../../src/shared/dedup/store-check.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { faultyStore, silentStore } from '../support/faulty-store.ts';
import { manualSystem } from '../support/manual-system.ts';

type Store = RecordStore<DedupRecord>;
const db = (await firestoreDatabases()).open().client();
let client: Awaited<ReturnType<typeof connect>>;
const connect = () => createClient({ url: inject('redisUrl') }).connect();
const memory = (): Store => memoryRecordStore(system.clock);

beforeAll(async () => {
  client = await connect();
});
afterAll(() => client.close());

describe('checkStore', () => {
  const good: Record<string, () => Store> = {
    memory,
    redis: () => redisRecordStore(client, `ptk:check-${process.pid}:`),
    firestore: () => firestoreRecordStore(db, system.clock, 'ptk-dedup'),
    'two tiers': () =>
      twoTierRecordStore({ fast: redisDoneCache(client, `ptk:done-${process.pid}:`), truth: memory(), system, log: silentLog }),
    'a store that reports its own claim as a conflict': () => faultyStore(memory(), ['own-conflict']),
  };
  test.each(Object.keys(good))('%s passes, every time', async (name) => {
    const store = good[name]?.() ?? memory();
    await checkStore(store, system);
    await checkStore(store, system);
  });

  const versionOf = async (store: Store, key: string) => (await store.get(key))?.version ?? 'absent';
  /** Each breaks one promise of the port. */
  const broken: [string, (store: Store) => Partial<Store>][] = [
    ['a key that nobody has used cannot be claimed', () => ({ put: async () => ({ conflict: undefined }) })],
    [
      // A client that ignores the options that it does not know.
      'a claimed key was claimed again',
      (store) => ({ put: async (key, record, _, keepMs) => store.put(key, record, await versionOf(store, key), keepMs) }),
    ],
    [
      'the loser of a claim is not told who won',
      (store) => ({
        async put(...args) {
          const result = await store.put(...args);
          return 'version' in result ? result : { conflict: undefined };
        },
      }),
    ],
    [
      'its clock reads 5 just after a write at 10',
      (store) => ({
        async put(...args) {
          const result = await store.put(...args);
          return 'version' in result || !result.conflict ? result : { conflict: { ...result.conflict, writtenAtMs: 10, nowMs: 5 } };
        },
      }),
    ],
    [
      'a write with the stored version was refused',
      (store) => ({
        put: async (key, record, expected, keepMs) => store.put(key, record, expected === 'absent' ? expected : 'none', keepMs),
      }),
    ],
    [
      'a write with a version that is over was taken',
      (store) => ({
        put: async (key, record, expected, keepMs) =>
          store.put(key, record, expected === 'absent' ? expected : await versionOf(store, key), keepMs),
      }),
    ],
    ['a read does not show the last write', () => ({ get: async () => undefined })],
  ];
  test.each(broken)('finds that %s', async (fault, breakIt) => {
    const store = memory();
    const check = checkStore({ ...store, ...breakIt(store) }, system);
    await expect(check).rejects.toMatchObject({ code: 'INVALID_SETTINGS', message: `the record store fails its check: ${fault}` });
  });

  test('a store that is down, or never answers, is STORE_UNAVAILABLE', async () => {
    await expect(checkStore(faultyStore(memory(), ['failed']), system)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    const machine = manualSystem();
    const silent = expect(checkStore(silentStore(), machine)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await machine.time.advance(10_000);
    await silent;
  });
});
