import { manualTime } from '../../src/emulator/time.ts';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { recordStoreContract } from './record-store.ts';

recordStoreContract('memory', async () => {
  const time = manualTime();
  return { store: memoryRecordStore(time), pass: (ms) => time.advance(ms), close: async () => {} };
});
