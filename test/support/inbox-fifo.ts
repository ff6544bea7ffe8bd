import type { Firestore, Transaction } from '@google-cloud/firestore';
import type { FaultKind } from '../../src/emulator/faults.ts';
import type { Time } from '../../src/emulator/time.ts';
import { firestoreInbox } from '../../src/shared/adapters/firestore.ts';
import { firestoreFifoStore, firestoreFifoTransactions } from '../../src/shared/adapters/firestore-fifo.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { InboxContext } from '../../src/shared/dedup/inbox.ts';
import { createInboxFifo, type InboxFifoParts } from '../../src/shared/fifo/inbox-fifo.ts';
import type { Handler } from '../../src/shared/ports.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';
import type { Databases } from './databases.ts';
import { numbered } from './fifo-processes.ts';
import { sequencing } from './sequencing.ts';

export type InboxHandler = Handler<InboxContext<Transaction>>;

/** An empty database and any number of processes of one consumer over it. */
export function inboxFifo(databases: Databases<Time>) {
  const parts = sequencing(databases, system);
  const { db, client, failCommits } = parts;
  const deadLetters = keptDeadLetters();
  const process = (handle: InboxHandler, { options, ...more }: Partial<InboxFifoParts<Transaction>> = {}, over: Firestore = client()) =>
    createInboxFifo<Transaction>({
      consumer: 'c',
      store: firestoreFifoStore(over, system.clock),
      transactions: firestoreFifoTransactions(over, system.clock),
      inbox: firestoreInbox(over, system.clock, 'ptk-dedup'),
      outbox: parts.outbox(),
      system,
      log: silentLog,
      deadLetters,
      options: { leaseMs: 5_000, holdMs: 5_000, commitEvery: 10, ...options },
      ...more,
    })(handle);
  return {
    ...parts,
    deadLetters,
    process,
    cursor: async (stream = 's') => (await db.doc(`ptk-cursors/c~${stream}`).get()).data(),
    effects: async () => (await db.collection('effects').get()).docs.map((document) => document.data()),
    count: async (collection: string) => (await db.collection(collection).count().get()).data().count,
    fail: (kind: FaultKind, times = 1) => failCommits(kind, times),
  };
}

/** Adds the number to what its stream has had so far, in a document that every number of it reads and writes. */
export const summing =
  (db: Firestore): InboxHandler =>
  async ({ attributes }, { transaction }) => {
    const sum = db.doc('sums/s');
    const had: string = (await transaction.get(sum)).get('had') ?? '';
    transaction.set(sum, { had: `${had}${attributes['ptk-seq']} ` });
  };

/** Writes a document of its own for each run that commits. */
export const writing =
  (db: Firestore): InboxHandler =>
  async ({ attributes }, { transaction }) => {
    transaction.create(db.doc(`effects/${attributes['ptk-seq']}`), { seq: Number(attributes['ptk-seq']) });
  };

/** Deliveries of these numbers, all at once, in this order; resolves to their verdicts. */
export const deliverAll = (handle: ReturnType<ReturnType<typeof inboxFifo>['process']>, numbers: readonly number[]) =>
  Promise.all(numbers.map((number) => handle(numbered(number), { signal: new AbortController().signal })));
