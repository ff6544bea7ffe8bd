import type { Firestore } from '@google-cloud/firestore';
import type { DelayRecord } from '../delay/ledger.ts';
import type { DelayLedger, DelayState } from '../delay/store.ts';
import { shards } from '../names.ts';
import type { Clock } from '../ports.ts';
import { firestoreRecordStore, storedOf } from './firestore.ts';
import { guarded } from './firestore-answers.ts';

export { firestoreLatenessStore } from './firestore-lateness.ts';
export { firestorePayloadStore } from './firestore-payloads.ts';

/** A document's id as a query names it, written out: a client takes no `FieldPath` of a second copy of its package. */
const documentId = '__name__';

const everyShard = Array.from({ length: shards }, (_, shard) => shard);

/**
 * The ledger in `ptk-delays`, its name with the prefix given. An index by due time alone would take 500 new entries a second; by shard
 * it takes as many for each.
 */
export function firestoreDelayLedger(db: Firestore, clock: Pick<Clock, 'nowMs'>, prefix = ''): DelayLedger {
  const collection = db.collection(`${prefix}ptk-delays`);
  const inOrder = (state: DelayState) => collection.where('state', '==', state).where('shard', 'in', everyShard).orderBy('dueAt');
  return {
    ...firestoreRecordStore<DelayRecord>(db, clock, collection.path, undefined, true),
    look: (key) =>
      guarded(async () => {
        const snapshot = await collection.doc(key).get();
        return { nowMs: snapshot.readTime.toMillis(), stored: storedOf<DelayRecord>(snapshot) };
      }),
    inState: (state, limit, after) =>
      guarded(async () => {
        const ordered = inOrder(state).orderBy(documentId).limit(limit);
        const { docs } = await (after ? ordered.startAfter(new Date(after.dueAtMs), after.key) : ordered).get();
        return docs.flatMap((document) => {
          const stored = storedOf<DelayRecord>(document);
          return stored ? [{ key: document.id, stored }] : [];
        });
      }),
    count: (state, dueBeforeMs) =>
      guarded(async () => {
        const all = inOrder(state);
        const counted = dueBeforeMs === undefined ? all : all.where('dueAt', '<', new Date(dueBeforeMs));
        return (await counted.count().get()).data().count;
      }),
  };
}
