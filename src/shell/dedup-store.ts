import { firestoreRecordStore } from '../shared/adapters/firestore.ts';
import { checkRedis, type RedisClient, redisDoneCache, redisRecordStore } from '../shared/adapters/redis.ts';
import { system } from '../shared/adapters/system.ts';
import { twoTierRecordStore } from '../shared/adapters/two-tier.ts';
import type { DedupRecord } from '../shared/dedup/decide.ts';
import { checkStore } from '../shared/dedup/store-check.ts';
import type { Log, RecordStore } from '../shared/ports.ts';
import { connectFirestore, connectRedis } from './clients.ts';
import type { Settings } from './settings.ts';

/** A store and what closes its clients. */
export type OpenStore = { readonly store: RecordStore<DedupRecord>; close(): Promise<void> };

/**
 * Where the deployables of these settings keep dedup keys, checked: a claim holds, and what is kept is not evicted.
 * @throws INVALID_SETTINGS when it cannot be reached or fails its check
 */
export async function openDedupStore(settings: Settings, log: Log): Promise<OpenStore> {
  const opened = await open(settings, log);
  await checkStore(opened.store, system);
  return opened;
}

async function open(settings: Settings, log: Log): Promise<OpenStore> {
  const prefix = settings.COLLECTION_PREFIX;
  if (settings.STORE === 'redis') {
    const client = await openRedis(settings, `${prefix}ptk:check:`, log);
    return { store: redisRecordStore<DedupRecord>(client, `${prefix}ptk:dedup:`), close: async () => client.destroy() };
  }
  const db = await connectFirestore(settings);
  const truth = firestoreRecordStore<DedupRecord>(db, system.clock, `${prefix}ptk-dedup`);
  if (settings.STORE === 'firestore') return { store: truth, close: () => db.terminate() };
  const client = await openRedis(settings, `${prefix}ptk:check:`, log);
  return {
    store: twoTierRecordStore<DedupRecord>({ fast: redisDoneCache(client, `${prefix}ptk:done:`), truth, system, log }),
    async close() {
      client.destroy();
      await db.terminate();
    },
  };
}

async function openRedis(settings: Settings, probePrefix: string, log: Log): Promise<RedisClient & { destroy(): void }> {
  const client = await connectRedis(settings, log);
  const policy = await checkRedis(client, probePrefix);
  if (policy !== undefined && policy !== 'noeviction')
    log.warn({ policy }, 'Redis evicts keys before their time when it is full: set maxmemory-policy to noeviction');
  return client;
}
