import { Firestore } from '@google-cloud/firestore';
import { startEmulator } from '../../src/emulator/server.ts';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { hash } from '../../src/shared/names.ts';
import { type Measure, ratePerSecond } from '../measure/rounds.ts';
import { consumerOn, deliver, lanes, nextMessage } from './consumer.ts';

export type FirestoreLoad = {
  /** Messages a second that are new to the store. */
  readonly first: Readonly<Record<'floor' | 'ours', Measure>>;
  close(): Promise<void>;
};

const measuredMs = 4_000;
const collection = 'dedup';

/** For each side a client of its own; the bare one creates and updates documents with the fields of ours. */
export async function openFirestoreLoad(address: string): Promise<FirestoreLoad> {
  const [db, bareDb] = [clientOf(address), clientOf(address)];
  const consumer = consumerOn(firestoreRecordStore(db, system.clock, collection));

  await deliver(consumer, nextMessage(), 'processed');
  const [stored] = (await db.collection(collection).limit(1).get()).docs;
  const done = stored?.data() ?? {};
  const running = { ...done, state: 'running' };
  let serial = 0;
  return {
    first: {
      floor: () =>
        ratePerSecond(lanes, measuredMs, async () => {
          // Ids as ours are: what lies in order costs a store less.
          const document = bareDb.collection(collection).doc(`bare~${hash(String(++serial))}`);
          const { writeTime } = await document.create(running);
          await document.update(done, { lastUpdateTime: writeTime });
        }),
      ours: () => ratePerSecond(lanes, measuredMs, () => deliver(consumer, nextMessage(), 'processed')),
    },
    async close() {
      await Promise.all([db.terminate(), bareDb.terminate()]);
    },
  };
}

/** How many calls an emulator got for a new message, and how many for its duplicate. */
export async function firestoreRoundTrips(): Promise<{ readonly first: number; readonly duplicate: number }> {
  const emulator = await startEmulator();
  const db = clientOf(emulator.firestore.address);
  // The only fault that lets a call through as it is; each one is counted.
  emulator.faults.add({ kind: 'slow-call', delayMs: 1 });
  const consumer = consumerOn(firestoreRecordStore(db, system.clock, collection));
  const message = nextMessage();
  const callsOf = async (expected: 'processed' | 'duplicate') => {
    const before = emulator.faults.counts()['slow-call'];
    await deliver(consumer, message, expected);
    return emulator.faults.counts()['slow-call'] - before;
  };
  try {
    return { first: await callsOf('processed'), duplicate: await callsOf('duplicate') };
  } finally {
    await db.terminate();
    await emulator.close();
  }
}

/** The client reads the address in its constructor, and asks the metadata server for credentials unless told that there is none. */
function clientOf(address: string): Firestore {
  process.env.METADATA_SERVER_DETECTION = 'none';
  process.env.FIRESTORE_EMULATOR_HOST = address;
  const db = new Firestore({ projectId: 'bench' });
  delete process.env.FIRESTORE_EMULATOR_HOST;
  return db;
}
