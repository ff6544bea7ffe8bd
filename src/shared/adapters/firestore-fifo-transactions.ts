import type { Firestore, Transaction } from '@google-cloud/firestore';
import type { DedupRecord } from '../dedup/decide.ts';
import type { FifoTransactions, Step } from '../fifo/transactions.ts';
import type { Clock } from '../ports.ts';
import { fieldsOf, storedOf, unchangedSince } from './firestore.ts';
import { codeOf, grpcCode, isConflict, storeError } from './firestore-answers.ts';
import { parkedFields, parkedId } from './firestore-parked.ts';
import { reads, type WatchedTransaction, watchedTransaction, writes } from './firestore-transaction.ts';

type Write = { readonly name: string; readonly args: readonly unknown[] };

/** Cursors in `ptk-cursors`, the park in `ptk-parked`, markers in `ptk-dedup`; all with the prefix given. */
export function firestoreFifoTransactions(db: Firestore, clock: Pick<Clock, 'nowMs'>, prefix = ''): FifoTransactions<Transaction> {
  const park = db.collection(`${prefix}ptk-parked`);
  const lost = Symbol('a read that lost');
  return {
    async transact(cursorKey, work) {
      const cursorRef = db.collection(`${prefix}ptk-cursors`).doc(cursorKey);
      let working = false;
      const watched: WatchedTransaction[] = [];
      const hasLost = () => watched.some((one) => one.hasLost());
      try {
        await db.runTransaction(
          async (transaction) => {
            const kept: Write[] = [];
            working = true;
            const write = await work({ begin: () => step(transaction, kept, watched) });
            // Whatever a handler made of a read that lost: it goes by what was not so.
            if (hasLost()) throw lost;
            for (const { name, args } of kept)
              (Reflect.get(transaction, name) as (...args: unknown[]) => unknown).apply(transaction, [...args]);
            const parked = write.park && parkedFields(write.park, clock);
            working = false;
            transaction.update(cursorRef, fieldsOf(write.cursor, clock, 'forever'), unchangedSince(db, write.expected));
            for (const place of write.unpark) transaction.delete(park.doc(parkedId(place)));
            if (write.park && parked) transaction.set(park.doc(parkedId(write.park)), parked);
          },
          { maxAttempts: 1 },
        );
        return 'committed';
      } catch (error) {
        if (hasLost() || codeOf(error) === grpcCode.aborted) return 'contended';
        throw isConflict(error) || working ? error : storeError(error);
      }
    },
  };

  function step(client: Transaction, kept: Write[], watched: WatchedTransaction[]): Step<Transaction> {
    const own: Write[] = [];
    let stale = false;
    /** What it writes waits; that it reads before it writes is watched as in every transaction. */
    const keeping: Transaction = new Proxy(client, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          if (writes.includes(name)) {
            own.push({ name: String(name), args });
            return keeping;
          }
          if (reads.includes(name)) stale ||= args.some((asked) => isRead(asked) && kept.some((write) => mayFind(asked, write)));
          return member.apply(client, args);
        };
      },
    });
    const seen = watchedTransaction(keeping);
    watched.push(seen);
    const markerRef = (documentId: string) => db.collection(`${prefix}ptk-dedup`).doc(documentId);
    return {
      transaction: seen.transaction,
      async marker(documentId) {
        const ref = markerRef(documentId);
        stale ||= kept.some((write) => pathOf(write.args[0]) === ref.path);
        return storedOf<DedupRecord>(await client.get(ref));
      },
      mark: (documentId, record, keepMs) => void own.push({ name: 'set', args: [markerRef(documentId), fieldsOf(record, clock, keepMs)] }),
      isStale: () => stale,
      keep: () => void kept.push(...own),
    };
  }
}

/** Options of a read are none. */
const isRead = (asked: unknown): boolean =>
  typeof asked === 'object' && asked !== null && ('path' in asked || 'where' in asked || 'query' in asked);

/** A query may find anything that was written before. */
const mayFind = (asked: unknown, { args: [written] }: Write): boolean => pathOf(asked) === undefined || pathOf(asked) === pathOf(written);

/** Of a document, by shape. */
function pathOf(target: unknown): string | undefined {
  const { path, where } = (target ?? {}) as { readonly path?: unknown; readonly where?: unknown };
  return typeof path === 'string' && where === undefined ? path : undefined;
}
