import type { Firestore, Transaction } from '@google-cloud/firestore';
import type { DedupRecord } from '../dedup/decide.ts';
import type { FifoTransactions, Step } from '../fifo/transactions.ts';
import type { Clock } from '../ports.ts';
import { fieldsOf, storedOf, unchangedSince } from './firestore.ts';
import { codeOf, grpcCode, isConflict, storeError } from './firestore-answers.ts';
import { parkedFields, parkedId } from './firestore-parked.ts';

type Write = { readonly name: string; readonly args: readonly unknown[] };

const reads: readonly PropertyKey[] = ['get', 'getAll', 'execute'];
const writes: readonly PropertyKey[] = ['create', 'set', 'update', 'delete'];

/** Cursors in `ptk-cursors`, the park in `ptk-parked`, markers in `ptk-dedup`; all with the prefix given. */
export function firestoreFifoTransactions(db: Firestore, clock: Pick<Clock, 'nowMs'>, prefix = ''): FifoTransactions<Transaction> {
  const park = db.collection(`${prefix}ptk-parked`);
  const lost = Symbol('a read that lost');
  return {
    async transact(cursorKey, work) {
      const cursorRef = db.collection(`${prefix}ptk-cursors`).doc(cursorKey);
      let working = false;
      let hasLost = false;
      try {
        await db.runTransaction(
          async (transaction) => {
            const kept: Write[] = [];
            const onLost = () => {
              hasLost = true;
            };
            working = true;
            const write = await work({ begin: () => step(transaction, kept, onLost) });
            // Whatever a handler made of a read that lost: it goes by what was not so.
            if (hasLost) throw lost;
            for (const { name, args } of kept)
              (Reflect.get(transaction, name) as (...args: unknown[]) => unknown).apply(transaction, [...args]);
            working = false;
            transaction.update(cursorRef, fieldsOf(write.cursor, clock, 'forever'), unchangedSince(db, write.expected));
            for (const place of write.unpark) transaction.delete(park.doc(parkedId(place)));
            if (write.park) transaction.set(park.doc(parkedId(write.park)), parkedFields(write.park, clock));
          },
          { maxAttempts: 1 },
        );
        return 'committed';
      } catch (error) {
        if (hasLost || codeOf(error) === grpcCode.aborted) return 'contended';
        throw isConflict(error) || working ? error : storeError(error);
      }
    },
  };

  function step(client: Transaction, kept: Write[], onLost: () => void): Step<Transaction> {
    const own: Write[] = [];
    let stale = false;
    const watched = (name: PropertyKey, method: (...args: unknown[]) => unknown) => {
      if (writes.includes(name)) {
        return (...args: unknown[]) => {
          own.push({ name: String(name), args });
          return transaction;
        };
      }
      if (!reads.includes(name)) return method.bind(client);
      return async (...args: unknown[]) => {
        const [written] = own;
        if (written) {
          throw new Error(`${pathOf(args[0])} is read after ${pathOf(written.args[0])} was written: a handler reads before it writes`);
        }
        // A query may find anything that was written before.
        stale ||= args.some(
          (asked) => isRead(asked) && kept.some((write) => pathOf(asked) === 'a query' || pathOf(asked) === pathOf(write.args[0])),
        );
        try {
          return await method.apply(client, args);
        } catch (error) {
          if (codeOf(error) === grpcCode.aborted) onLost();
          throw error;
        }
      };
    };
    const transaction: Transaction = new Proxy(client, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === 'function' ? watched(name, member as (...args: unknown[]) => unknown) : member;
      },
    });
    const markerRef = (documentId: string) => db.collection(`${prefix}ptk-dedup`).doc(documentId);
    return {
      transaction,
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

/** By shape; a query has no path of its own, though a collection has one. */
function pathOf(target: unknown): string {
  const { path, where } = (target ?? {}) as { readonly path?: unknown; readonly where?: unknown };
  return typeof path === 'string' && where === undefined ? path : 'a query';
}
