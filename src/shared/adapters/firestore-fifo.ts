import type { Firestore, Timestamp } from '@google-cloud/firestore';
import type { Cursor } from '../fifo/cursor.ts';
import type { FifoStore, Place } from '../fifo/store.ts';
import { encodeName } from '../names.ts';
import type { Clock } from '../ports.ts';
import { firestoreRecordStore, storedOf } from './firestore.ts';
import { guarded, unlessConflict } from './firestore-answers.ts';
import { messageOf, parkedFields, parkedId } from './firestore-parked.ts';

export { firestoreFifoTransactions } from './firestore-fifo-transactions.ts';

const duePlaces = 300;

/** Cursors in `ptk-cursors`, waiting messages in `ptk-parked`; both names with the prefix given. */
export function firestoreFifoStore(db: Firestore, clock: Pick<Clock, 'nowMs'>, prefix = ''): FifoStore {
  const collection = `${prefix}ptk-cursors`;
  const cursors = firestoreRecordStore<Cursor>(db, clock, collection);
  const park = db.collection(`${prefix}ptk-parked`);
  const documentOf = (place: Place) => park.doc(parkedId(place));
  const beside: FifoStore['beside'] = (change) =>
    firestoreRecordStore<Cursor>(db, clock, collection, (batch) => {
      for (const place of change.unpark) batch.delete(documentOf(place));
      if (change.park) batch.set(documentOf(change.park), parkedFields(change.park, clock));
    });
  return {
    ...cursors,
    beside,
    async park(parked) {
      const fields = parkedFields(parked, clock);
      if (await unlessConflict(() => documentOf(parked).create(fields))) return undefined;
      const there = (await guarded(() => documentOf(parked).get())).data();
      return there && messageOf(there);
    },
    unpark: (place) => guarded(async () => void (await documentOf(place).delete())),
    look: (cursorKey, place) =>
      guarded(async () => {
        const [cursor, parked] = await db.getAll(db.collection(collection).doc(cursorKey), documentOf(place));
        const fields = parked?.data();
        return { cursor: cursor && storedOf<Cursor>(cursor), parked: fields && messageOf(fields) };
      }),
    ahead: (place, limit) =>
      guarded(async () => {
        const { consumer, stream, epoch, seq } = place;
        const inOrder = park.where('consumer', '==', consumer).where('stream', '==', stream).where('epoch', '==', epoch);
        const found = await inOrder.where('seq', '>=', seq).orderBy('seq').limit(limit).get();
        const gap = found.docs.findIndex((document, index) => document.get('seq') !== seq + index);
        return found.docs.slice(0, gap === -1 ? found.size : gap).map((document) => messageOf(document.data()));
      }),
    due: (consumer, nowMs) =>
      guarded(async () => {
        const due = park.where('consumer', '==', consumer).where('dueAt', '<=', new Date(nowMs)).orderBy('dueAt').limit(duePlaces);
        const found = await due.select('consumer', 'stream', 'epoch', 'seq').get();
        return found.docs.map((document) => document.data() as Place);
      }),
    lowest: (consumer, stream) =>
      guarded(async () => {
        const inOrder = park.where('consumer', '==', consumer).where('stream', '==', stream).orderBy('epoch').orderBy('seq').limit(1);
        const [document] = (await inOrder.select('consumer', 'stream', 'epoch', 'seq', 'parkedAt').get()).docs;
        if (!document) return undefined;
        const { parkedAt, ...place } = document.data();
        return { ...(place as Place), parkedAtMs: (parkedAt as Timestamp).toMillis() };
      }),
    async postpone(places, dueAtMs) {
      const dueAt = new Date(dueAtMs);
      await Promise.all(places.map((place) => unlessConflict(() => documentOf(place).update({ dueAt }))));
    },
    waiting: (consumer, stream) =>
      guarded(async () => {
        const counted = await park
          .where('consumer', '==', consumer)
          .where('stream', '==', stream)
          .orderBy('epoch')
          .orderBy('seq')
          .count()
          .get();
        return counted.data().count;
      }),
    blockedStreams: (consumer) =>
      guarded(async () => {
        const scope = `${encodeName(consumer, 'the consumer')}~`;
        const found = await db.collection(collection).where('blocked.seq', '>', 0).get();
        return found.docs.flatMap((document) => {
          const stored = document.id.startsWith(scope) ? storedOf<Cursor>(document) : undefined;
          return stored ? [{ stream: decodeURIComponent(document.id.slice(scope.length)), cursor: stored }] : [];
        });
      }),
  };
}
