import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import type { FaultRule } from '../../src/emulator/faults.ts';

export type Addresses = { readonly pubsub: string; readonly firestore: string };

export const projectId = 'bench';
export const payload = Buffer.alloc(100, 'x');

/** The client reads the address in its constructor, and asks the metadata server for credentials unless told that there is none. */
export function firestoreAt(address: string): Firestore {
  process.env.METADATA_SERVER_DETECTION = 'none';
  process.env.FIRESTORE_EMULATOR_HOST = address;
  const db = new Firestore({ projectId });
  delete process.env.FIRESTORE_EMULATOR_HOST;
  return db;
}

export const pubsubAt = (address: string): PubSub => new PubSub({ projectId, apiEndpoint: address, emulatorMode: true });

/** From here on every Firestore call takes so much longer. */
export async function slowFirestore({ firestore }: Addresses, delayMs: number): Promise<void> {
  // Only Firestore's resources are databases.
  const rules: readonly FaultRule[] = [{ kind: 'slow-call', delayMs, resource: '/databases/' }];
  const answer = await fetch(`http://${firestore}/faults`, { method: 'PUT', body: JSON.stringify(rules) });
  if (!answer.ok) throw new Error(`the emulator refused the fault: ${await answer.text()}`);
}
