import { startEmulator } from '../../src/emulator/server.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { firestoreClient } from '../support/targets.ts';
import { type Note, recordStoreContract } from './record-store.ts';

recordStoreContract('firestore', async () => {
  const time = manualTime();
  const emulator = await startEmulator({ time });
  const db = firestoreClient(emulator.firestore.address, 'ptk-contract');
  return {
    store: firestoreRecordStore<Note>(db, time, 'ptk-dedup'),
    pass: (ms) => time.advance(ms),
    async close() {
      await db.terminate();
      await emulator.close();
    },
  };
});
