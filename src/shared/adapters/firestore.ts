import { type DocumentReference, type DocumentSnapshot, type Firestore, Timestamp, type Transaction } from '@google-cloud/firestore';
import type { DedupRecord } from '../dedup/decide.ts';
import type { InboxStore } from '../dedup/inbox.ts';
import { ToolkitError } from '../errors.ts';
import type { Clock, RecordStore, Revised, Stored, Version } from '../ports.ts';
import { fromWire, toWire } from '../wire.ts';

/** gRPC codes. A refused precondition is one of four, and which one says nothing (protocol 0.7). */
const grpcCode = { notFound: 5, alreadyExists: 6, failedPrecondition: 9, aborted: 10 } as const;

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null | undefined)?.code;

export const isConflict = (error: unknown): boolean => Object.values<unknown>(grpcCode).includes(codeOf(error));

export const storeError = (error: unknown): ToolkitError =>
  new ToolkitError('STORE_UNAVAILABLE', `Firestore: ${error instanceof Error ? error.message : String(error)}`, error);

/** A collection of records. The client is the caller's: connected, and closed by the caller. */
export function firestoreRecordStore<R extends Revised>(db: Firestore, clock: Pick<Clock, 'nowMs'>, collection: string): RecordStore<R> {
  const documentOf = (key: string) => db.collection(collection).doc(key);
  const read = async (ref: DocumentReference) => {
    try {
      return storedOf<R>(await ref.get());
    } catch (error) {
      throw storeError(error);
    }
  };
  return {
    get: (key) => read(documentOf(key)),
    async put(key, record, expected, keepMs) {
      const ref = documentOf(key);
      const fields = fieldsOf(record, clock, keepMs);
      try {
        const write = expected === 'absent' ? await ref.create(fields) : await ref.update(fields, { lastUpdateTime: instantOf(expected) });
        return { version: versionOf(write.writeTime) };
      } catch (error) {
        if (!isConflict(error)) throw storeError(error);
        return { conflict: await read(ref) };
      }
    },
  };
}

/** The inbox: markers in the dedup collection, in one transaction with the user's own documents. */
export function firestoreInbox(db: Firestore, clock: Pick<Clock, 'nowMs'>, collection: string): InboxStore<Transaction> {
  const store = firestoreRecordStore<DedupRecord>(db, clock, collection);
  const nothing = Symbol('nothing to commit');
  return {
    get: store.get,
    async transact(key, work, keepMs) {
      const ref = db.collection(collection).doc(key);
      let handling = false;
      try {
        await db.runTransaction(
          async (transaction) => {
            const marker = storedOf<DedupRecord>(await transaction.get(ref));
            handling = true;
            const write = await work(marker, transaction);
            handling = false;
            if (!write) throw nothing;
            // Not create: the read above already isolates, and an expired marker may stand here.
            transaction.set(ref, fieldsOf(write, clock, keepMs));
          },
          { maxAttempts: 1 },
        );
        return 'committed';
      } catch (error) {
        if (error === nothing) return 'nothing';
        if (codeOf(error) === grpcCode.aborted) return 'contended';
        throw isConflict(error) || handling ? error : storeError(error);
      }
    },
  };
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

/** `expireAt` only lets the TTL policy collect garbage, so the worker's clock is good enough for it. */
export function fieldsOf(record: object, clock: Pick<Clock, 'nowMs'>, keepMs: number | 'forever'): Record<string, unknown> {
  const fields = toWire(record, (atMs) => Timestamp.fromMillis(atMs));
  return keepMs === 'forever' ? fields : { ...fields, expireAt: Timestamp.fromMillis(clock.nowMs() + keepMs) };
}

export const versionOf = (updateTime: Timestamp): Version => `${updateTime.seconds}.${updateTime.nanoseconds}`;

export function instantOf(version: Version): Timestamp {
  const [seconds = '0', nanoseconds = '0'] = version.split('.');
  return new Timestamp(Number(seconds), Number(nanoseconds));
}

/** By shape: a second copy of the client has a class of its own. */
const isTimestamp = (value: unknown): value is { toMillis(): number } =>
  typeof value === 'object' && value !== null && typeof (value as { toMillis?: unknown }).toMillis === 'function';
