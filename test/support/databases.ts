import type { Firestore } from '@google-cloud/firestore';
import { afterAll } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/server.ts';
import { realTime, type Time } from '../../src/emulator/time.ts';
import { isOfficial, notRun, officialFirestore } from './official.ts';
import { firestoreClient } from './targets.ts';

export type Databases<T extends Time> = {
  readonly emulator: Emulator<T>;
  /** An empty database, and as many clients of it as asked for: each is another process's. */
  open(): { readonly projectId: string; client(): Firestore };
};

/** One embedded emulator for a test file, or Google's in that mode; all clients are closed at the end. */
export async function firestoreDatabases<T extends Time = Time>(time: T = realTime() as Time as T): Promise<Databases<T>> {
  const emulator = await startEmulator({ time });
  const isManual = 'advance' in time;
  const address = isOfficial ? officialFirestore() : emulator.firestore.address;
  const clients: Firestore[] = [];
  let projects = 0;
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.terminate()));
    await emulator.close();
  });
  return {
    get emulator() {
      return isOfficial ? notRun('faults') : emulator;
    },
    open() {
      if (isOfficial && isManual) notRun('manual time');
      // Google's emulator keeps what the test before has left.
      const projectId = `ptk-database-${process.pid}-${Date.now()}-${++projects}`;
      return {
        projectId,
        client() {
          const client = firestoreClient(address, projectId);
          clients.push(client);
          return client;
        },
      };
    },
  };
}
