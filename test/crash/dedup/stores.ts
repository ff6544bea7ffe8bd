import type { Firestore } from '@google-cloud/firestore';
import { createClient } from 'redis';
import { firestoreRecordStore } from '../../../src/shared/adapters/firestore.ts';
import { redisDoneCache, redisRecordStore } from '../../../src/shared/adapters/redis.ts';
import { system } from '../../../src/shared/adapters/system.ts';
import { twoTierRecordStore } from '../../../src/shared/adapters/two-tier.ts';
import type { DedupRecord } from '../../../src/shared/dedup/decide.ts';
import type { RecordStore } from '../../../src/shared/ports.ts';
import { silentLog } from '../../../src/testing/doubles.ts';
import type { RedisUrls, Setup } from './plan.ts';
import { type StopAt, stoppingTruth } from './stops.ts';

export const collection = 'ptk-dedup';

export type Stores = {
  storeOf(setup: Setup, stopAt: StopAt): Promise<RecordStore<DedupRecord>>;
  /** The one that decides. */
  truthOf(setup: Setup): Promise<RecordStore<DedupRecord>>;
  close(): void;
};

/** The stores of each setup; a Redis is connected when it is first asked for. */
export function createStores(db: Firestore, redisUrls: RedisUrls): Stores {
  const firestore = firestoreRecordStore<DedupRecord>(db, system.clock, collection);
  const clients = new Map<string, ReturnType<typeof connect>>();
  const redisOf = (setup: Setup) => {
    const [, fault = 'sound'] = /^\w+ (.*)$/.exec(setup) ?? [];
    const url = redisUrls[fault as keyof RedisUrls];
    const client = clients.get(url) ?? connect(url);
    clients.set(url, client);
    return client;
  };
  const truthOf = async (setup: Setup) =>
    setup.startsWith('redis') ? redisRecordStore<DedupRecord>(await redisOf(setup), 'ptk:dedup:') : firestore;
  return {
    async storeOf(setup, stopAt) {
      if (!setup.startsWith('twoTier')) return truthOf(setup);
      const fast = redisDoneCache(await redisOf(setup), 'ptk:done:');
      return twoTierRecordStore({ fast, truth: stoppingTruth(firestore, stopAt), system, log: silentLog });
    },
    truthOf,
    close() {
      for (const client of clients.values()) client.then((connected) => connected.destroy()).catch(() => {});
    },
  };
}

const connect = (url: string) =>
  createClient({ url })
    // Without a listener a broken connection would end the process.
    .on('error', () => undefined)
    .connect();
