import type { DocumentReference, DocumentSnapshot, Firestore, Timestamp, Transaction, WriteBatch } from '@google-cloud/firestore';
import type { DedupRecord } from '../dedup/decide.ts';
import type { InboxStore } from '../dedup/inbox.ts';
import { ToolkitError } from '../errors.ts';
import type { Clock, RecordStore, Revised, Stored, Version } from '../ports.ts';
import { fromWire, toWire } from '../wire.ts';
import { codeOf, committed, grpcCode, instantOf, isConflict, storeError, versionOf } from './firestore-answers.ts';
import { watchedTransaction } from './firestore-transaction.ts';

export { createOnce } from './create-once.ts';
export { instantOf, isConflict, storeError, versionOf } from './firestore-answers.ts';
export { firestoreVersionedDocuments } from './versioned-documents.ts';

/** Each client's own class of instants, which it insists on: two copies of the package may be loaded. */
const instants = new WeakMap<Firestore, typeof Timestamp>();

/**
 * A collection of records. The client is the caller's: connected, and closed by the caller.
 *
 * @param beside adds to the commit of each put, and may refuse it by a throw
 * @param canReturn whether a record that was to be kept for a while may become one that is kept for ever
 */
export function firestoreRecordStore<R extends Revised>(
  db: Firestore,
  clock: Pick<Clock, 'nowMs'>,
  collection: string,
  beside?: (batch: WriteBatch) => void,
  canReturn = false,
): RecordStore<R> {
  const documentOf = (key: string) => db.collection(collection).doc(key);
  const known = (time: Timestamp) => {
    instants.set(db, time.constructor as typeof Timestamp);
    return versionOf(time);
  };
  const read = async (ref: DocumentReference) => {
    const snapshot = await ref.get().catch((error: unknown) => {
      throw storeError(error);
    });
    known(snapshot.readTime);
    return recordOf<R>(snapshot);
  };
  return {
    get: (key) => read(documentOf(key)),
    async put(key, record, expected, keepMs) {
      const ref = documentOf(key);
      const fields = fieldsOf(record, clock, keepMs);
      const batch = db.batch();
      beside?.(batch);
      try {
        if (expected === 'absent') batch.create(ref, fields);
        else batch.update(ref, canReturn ? { expireAt: null, ...fields } : fields, unchangedSince(db, expected));
        return { version: (await committed(batch, instants.has(db), known)).at(-1) ?? '' };
      } catch (error) {
        if (!isConflict(error)) throw storeError(error);
        return { conflict: await read(ref) };
      }
    },
  };
}

/** The precondition of a write, in the client's own class of instants. */
export const unchangedSince = (db: Firestore, version: Version) => ({ lastUpdateTime: instantOf(version, instants.get(db)) });

/** The inbox: markers in the dedup collection, in one transaction with the user's own documents. */
export function firestoreInbox(db: Firestore, clock: Pick<Clock, 'nowMs'>, collection: string): InboxStore<Transaction> {
  const store = firestoreRecordStore<DedupRecord>(db, clock, collection);
  const nothing = Symbol('nothing to commit');
  return {
    get: store.get,
    async transact(key, work, keepMs) {
      const ref = db.collection(collection).doc(key);
      let handling = false;
      let hasLost = () => false;
      try {
        await db.runTransaction(
          async (transaction) => {
            const snapshot = await transaction.get(ref);
            const watched = watchedTransaction(transaction);
            hasLost = watched.hasLost;
            handling = true;
            const marker = recordOf<DedupRecord>(snapshot);
            const write = await work(marker, watched.transaction);
            handling = false;
            // Whatever the handler made of a read that lost: it goes by what was not so.
            if (!write || watched.hasLost()) throw nothing;
            // Not create: the read above already isolates, and an expired marker may stand here.
            transaction.set(ref, fieldsOf(write, clock, keepMs));
          },
          { maxAttempts: 1 },
        );
        return 'committed';
      } catch (error) {
        if (hasLost() || codeOf(error) === grpcCode.aborted) return 'contended';
        if (error === nothing) return 'nothing';
        throw isConflict(error) || handling ? error : storeError(error);
      }
    },
  };
}

/**
 * A document that must be a record.
 * @throws RECORD_UNREADABLE
 */
function recordOf<R extends Revised>(snapshot: DocumentSnapshot): Stored<R> | undefined {
  const stored = storedOf<R>(snapshot);
  if (!stored || (Number.isInteger(stored.record.rev) && typeof stored.record.runId === 'string')) return stored;
  throw new ToolkitError('RECORD_UNREADABLE', `the document ${snapshot.ref.path} is no record of this toolkit: it has no rev and runId`);
}

/** A document as a stored record, with the store's own clock. */
export function storedOf<R>(snapshot: DocumentSnapshot): Stored<R> | undefined {
  const fields = snapshot.data();
  if (!fields || !snapshot.updateTime) return undefined;
  return {
    record: fromWire<R>(fields, (value) => (isTimestamp(value) ? value.toMillis() : undefined)),
    version: versionOf(snapshot.updateTime),
    writtenAtMs: snapshot.updateTime.toMillis(),
    nowMs: snapshot.readTime.toMillis(),
  };
}

/**
 * `expireAt` only lets the TTL policy collect garbage, so the worker's clock is good enough for it. Instants go in as `Date`: a client
 * refuses the `Timestamp` of a second copy of the package.
 */
export function fieldsOf(record: object, clock: Pick<Clock, 'nowMs'>, keepMs: number | 'forever'): Record<string, unknown> {
  const fields = toWire(record, (atMs) => new Date(atMs));
  return keepMs === 'forever' ? fields : { ...fields, expireAt: new Date(clock.nowMs() + keepMs) };
}

/** By shape: a second copy of the client has a class of its own. */
const isTimestamp = (value: unknown): value is { toMillis(): number } =>
  typeof value === 'object' && value !== null && typeof (value as { toMillis?: unknown }).toMillis === 'function';
