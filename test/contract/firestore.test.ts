import { startEmulator } from '../../src/emulator/server.ts';
import { manualTime, realTime } from '../../src/emulator/time.ts';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { isOfficial, notRun, officialFirestore } from '../support/official.ts';
import { firestoreClient } from '../support/targets.ts';
import { type Note, recordStoreContract } from './record-store.ts';

recordStoreContract('firestore', async () => {
  const manual = isOfficial ? undefined : manualTime();
  const time = manual ?? realTime();
  const emulator = await startEmulator({ time });
  const db = firestoreClient(isOfficial ? officialFirestore() : emulator.firestore.address, `ptk-contract-${Date.now()}`);
  return {
    store: firestoreRecordStore<Note>(db, time, 'ptk-dedup'),
    pass: async (ms) => (manual ? manual.advance(ms) : notRun('manual time')),
    async close() {
      await db.terminate();
      await emulator.close();
    },
  };
});
