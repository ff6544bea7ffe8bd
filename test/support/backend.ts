import { expect, inject } from 'vitest';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/server.ts';
import { isOfficial, notRun } from './official.ts';

/** What the deployables of a test file run on. */
export type Backend = Pick<Emulator, 'env' | 'tasks' | 'appEngine' | 'faults' | 'close'> & {
  readonly pubsub: Pick<Emulator['pubsub'], 'address'>;
  readonly firestore: Pick<Emulator['firestore'], 'address'>;
  /** Ends a test that must look into the backlog where nobody can. */
  checkInspected(): void;
  /** Resolves once no subscription holds a message without an ack. */
  untilEmpty(): Promise<void>;
};

/** The embedded emulator; with `EMULATORS=official` Google's Pub/Sub and Firestore, and of ours Cloud Tasks alone. */
export async function startBackend(options: EmulatorOptions = {}): Promise<Backend> {
  const emulator = await startEmulator(options);
  const untilEmpty = () => expect.poll(() => emulator.pubsub.backlog()).toBe(0);
  if (!isOfficial) return { ...emulator, untilEmpty, checkInspected: () => {} };
  const [pubsub, firestore] = [inject('googlePubsub'), inject('googleFirestore')];
  if (!pubsub || !firestore) throw new Error('EMULATORS is official, and Google’s emulators are not installed');
  return {
    env: { ...emulator.env, PUBSUB_EMULATOR_HOST: pubsub, FIRESTORE_EMULATOR_HOST: firestore },
    pubsub: { address: pubsub },
    firestore: { address: firestore },
    checkInspected: () => notRun('inspection'),
    untilEmpty: () => notRun('inspection'),
    tasks: emulator.tasks,
    appEngine: emulator.appEngine,
    get faults() {
      return notRun('faults');
    },
    close: emulator.close,
  };
}
