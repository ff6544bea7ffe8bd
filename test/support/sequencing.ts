import type { Firestore, Transaction } from '@google-cloud/firestore';
import type { FaultKind } from '../../src/emulator/faults.ts';
import type { Time } from '../../src/emulator/time.ts';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { firestoreStreamStore } from '../../src/shared/adapters/firestore-streams.ts';
import { hash } from '../../src/shared/names.ts';
import type { RelayLease } from '../../src/shared/outbox/decide.ts';
import { createOutbox } from '../../src/shared/outbox/outbox.ts';
import { createRelay, type RelayParts } from '../../src/shared/outbox/relay.ts';
import { createSequencer, type SequencedDraft, type SequencerParts } from '../../src/shared/outbox/sequencer.ts';
import type { System } from '../../src/shared/ports.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import type { Databases } from './databases.ts';
import { recordingPublisher } from './recording-publisher.ts';

/** A message of stream `s` to topic `t`. */
export const draft = (key: string, more: Partial<SequencedDraft> = {}): SequencedDraft => ({
  stream: 's',
  topic: 't',
  key,
  data: Buffer.from(key),
  ...more,
});

/** The numbers from 1 to the last. */
export const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

/** An empty database and a recording topic, shared by any number of publishers and relays. */
export function sequencing(databases: Databases<Time>, system: System) {
  const { projectId, client } = databases.open();
  const db = client();
  const publisher = recordingPublisher();
  const streams = (over: Firestore = db) => firestoreStreamStore(over, system.clock);
  const parts = { streams: streams(), publisher, system, log: silentLog };
  return {
    db,
    client,
    publisher,
    streams,
    sequencer: (more: Partial<SequencerParts<Transaction>> = {}) => createSequencer<Transaction>({ ...parts, ...more }),
    outbox: (over: Firestore = db) => createOutbox({ streams: streams(over), system }),
    leases: firestoreRecordStore<RelayLease>(db, system.clock, 'ptk-relays'),
    relay: (more: Partial<RelayParts> = {}) =>
      createRelay({ ...parts, leases: firestoreRecordStore<RelayLease>(db, system.clock, 'ptk-relays'), ...more }),
    entry: async (key: string, stream = 's') => (await db.doc(`ptk-outbox/${hash(stream)}~${hash(key)}`).get()).data(),
    counter: async () => (await db.doc('ptk-streams/s').get()).data(),
    entries: async () => (await db.collection('ptk-outbox').get()).docs.map((document) => document.data()),
    failCommits: (kind: FaultKind, times: number) =>
      databases.emulator.faults.add({ kind, rpc: 'Firestore.Commit', resource: projectId, times }),
  };
}
