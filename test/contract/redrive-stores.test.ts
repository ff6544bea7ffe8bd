import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { redisDoneCache, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { twoTierRecordStore } from '../../src/shared/adapters/two-tier.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { openDedupStore } from '../../src/shell/dedup-store.ts';
import { readSettings } from '../../src/shell/settings.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { keyed, withConflict } from '../support/redriving.ts';
import { firestoreClient } from '../support/targets.ts';

const projectId = 'ptk-redrive-stores';
let emulator: Backend;

beforeAll(async () => {
  emulator = await startBackend();
  for (const [name, value] of Object.entries(emulator.env)) vi.stubEnv(name, value);
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await emulator.close();
});

/** The store as the dedup function makes it, from its own clients. */
async function consumersStore(kind: string, prefix: string) {
  const db = firestoreClient(emulator.firestore.address, projectId);
  const redis = await createClient({ url: inject('redisUrl') }).connect();
  const truth = firestoreRecordStore<DedupRecord>(db, system.clock, `${prefix}ptk-dedup`);
  const stores = {
    firestore: () => truth,
    redis: () => redisRecordStore<DedupRecord>(redis, `${prefix}ptk:dedup:`),
    'two-tier': () => twoTierRecordStore<DedupRecord>({ fast: redisDoneCache(redis, `${prefix}ptk:done:`), truth, system, log: silentLog }),
  };
  const close = async () => {
    redis.destroy();
    await db.terminate();
  };
  return { store: stores[kind as keyof typeof stores](), close };
}

describe('redrive on the store that the settings name', () => {
  test.each(['firestore', 'redis', 'two-tier'])('%s lets the new content run once, and the old one be a duplicate', async (STORE) => {
    const prefix = `redrive-${process.pid}-${STORE}-`;
    const consumers = await consumersStore(STORE, prefix);
    const { ask, deliver, deliverPublished, ran } = await withConflict({ store: consumers.store });
    const environment = { GOOGLE_CLOUD_PROJECT: projectId, CONSUMER: 'c', SINK: 'topic:none', COLLECTION_PREFIX: prefix };
    const opened = await openDedupStore(readSettings('dedup', { ...environment, STORE, REDIS_URL: inject('redisUrl') }), silentLog);
    expect(await ask('accept-new', { store: opened.store, system })).toEqual({ accepted: 1, kept: 0, left: 0 });
    await opened.close();
    expect(await deliverPublished()).toEqual(['processed']);
    expect(await deliver(keyed('m9', 'old'))).toBe('duplicate');
    expect(ran).toEqual(['old', 'new']);
    await consumers.close();
  });
});
