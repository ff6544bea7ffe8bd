import { createClient } from 'redis';
import { inject } from 'vitest';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { redisDoneCache } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { twoTierRecordStore } from '../../src/shared/adapters/two-tier.ts';
import { pause } from '../../src/shared/waiting.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { type Note, recordStoreContract } from './record-store.ts';

const databases = await firestoreDatabases();

recordStoreContract('two tiers, redis before firestore', async () => {
  const client = await createClient({ url: inject('redisUrl') }).connect();
  const fast = redisDoneCache<Note>(client, `ptk:done-${process.pid}:`);
  const truth = firestoreRecordStore<Note>(databases.open().client(), system.clock, 'ptk-dedup');
  return {
    store: twoTierRecordStore({ fast, truth, system, log: silentLog }),
    pass: (ms) => pause(system.clock, ms),
    close: async () => void (await client.close()),
  };
});
