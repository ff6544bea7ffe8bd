import type { DocumentSnapshot, Firestore, Query, Timestamp, Transaction } from '@google-cloud/firestore';
import { ToolkitError, textOf } from '../errors.ts';
import { attribute } from '../message.ts';
import { encodeName, shardOf } from '../names.ts';
import { type Counter, type CounterState, counterFault, type Entry, type Numbering } from '../outbox/decide.ts';
import { entryIdOf, type PendingEntry, type StreamStore } from '../outbox/store.ts';
import type { Clock } from '../ports.ts';
import { fieldsOf, storedOf } from './firestore.ts';
import { codeOf, committed, guarded, instantOf, unlessConflict, versionOf } from './firestore-answers.ts';

export { firestoreFifoStore } from './firestore-fifo.ts';

/** Entries read at once to learn which streams are due: of one stream no more than these. */
const duePage = 100;
/** What is not known of a pending entry before it is read; each field costs. */
const pendingFields = ['epoch', 'seq', 'key', 'topic', 'message', 'keepBody', 'nextAttemptAt', 'attempts'];

/**
 * Counters in `ptk-streams`, entries in `ptk-outbox`; every name with the prefix given. The composite indexes that the queries need, and
 * the fields that need none, stand in `terraform/firestore.indexes.json`.
 */
export function firestoreStreamStore(db: Firestore, clock: Pick<Clock, 'nowMs'>, prefix = ''): StreamStore<Transaction> {
  const outbox = db.collection(`${prefix}ptk-outbox`);
  const pendingOnes = outbox.where('state', '==', 'pending');
  const counterOf = (stream: string) => db.collection(`${prefix}ptk-streams`).doc(encodeName(stream, attribute.stream));
  const entryOf = (stream: string, key: string) => outbox.doc(entryIdOf({ stream, key }));
  const refsOf = (stream: string, group: readonly { readonly key: string }[]) =>
    [counterOf(stream), ...group.map(({ key }) => entryOf(stream, key))] as const;

  /** Of the client's own copy of the package; it takes no other as a precondition. */
  let Instant: typeof Timestamp | undefined;
  const known = (time: Timestamp) => {
    Instant = time.constructor as typeof Timestamp;
    return versionOf(time);
  };
  const ifStill = (version: string) => ({ lastUpdateTime: instantOf(version, Instant) });
  const fieldsOfEntry = (
    entry: Partial<Entry>,
    { stream, key }: Pick<Entry, 'stream' | 'key'>,
    keepMs: number | 'forever' = 'forever',
  ) => ({
    ...fieldsOf(entry, clock, keepMs),
    shard: shardOf(stream || key),
  });
  const lookOf = ([counter, ...entries]: readonly DocumentSnapshot[]) => {
    if (counter) known(counter.readTime);
    return { state: stateOf(counter), entries: entries.map((snapshot) => storedOf<Entry>(snapshot)?.record) };
  };
  const found = async (stream: string, query: Query): Promise<PendingEntry[]> => {
    const { docs, readTime } = await guarded(() => query.get());
    known(readTime);
    return docs.flatMap((document) => {
      const stored = storedOf<Entry>(document);
      return stored
        ? [{ id: document.id, entry: { ...stored.record, state: 'pending', stream, messageId: null }, version: stored.version }]
        : [];
    });
  };

  return {
    look: async (stream, group) => lookOf(await guarded(() => db.getAll(...refsOf(stream, group)))),

    async append(stream, { counter, expected, entries }) {
      const batch = db.batch();
      if (expected === 'absent') batch.create(counterOf(stream), { ...counter });
      else batch.update(counterOf(stream), { ...counter }, ifStill(expected));
      for (const entry of entries) batch.create(entryOf(stream, entry.key), fieldsOfEntry(entry, entry));
      let version = '';
      const applied = await unlessConflict(async () => {
        [version = ''] = await committed(batch, Instant !== undefined, known);
      });
      return applied ? { counter, version } : undefined;
    },

    async lookWithin(transaction, stream, group) {
      const refs = refsOf(stream, group);
      try {
        return lookOf(await transaction.getAll(...refs));
      } catch (error) {
        // What has a code is Firestore's or ours; without one the client refused the read.
        if (codeOf(error) !== undefined) throw error;
        const why = 'in a transaction all reads come before all writes; several messages are given in one call, before the writes';
        throw new Error(`${refs[0].path} cannot be read (${textOf(error)}): ${why}`, { cause: error });
      }
    },

    appendWithin(transaction, stream, { counter, expected, entries }: Numbering) {
      // Without a precondition: the transaction has read them.
      if (expected === 'absent') transaction.create(counterOf(stream), { ...counter });
      else transaction.update(counterOf(stream), { ...counter });
      for (const entry of entries) transaction.create(entryOf(stream, entry.key), fieldsOfEntry(entry, entry));
    },

    setWithin(transaction, id, entry) {
      transaction.set(outbox.doc(id), fieldsOfEntry(entry, entry));
    },

    async markPublished(marks, keepMs) {
      if (marks.length === 0) return;
      const batch = db.batch();
      for (const { id, entry, messageId } of marks) {
        const { nextAttemptAtMs: _, ...kept } = entry;
        const stub = { ...kept, state: 'published', messageId, message: entry.keepBody ? entry.message : null } as const;
        // Whole, and not changed: of one that is gone the others must be marked all the same.
        batch.set(outbox.doc(id), fieldsOfEntry(stub, entry, keepMs));
      }
      await guarded(() => committed(batch, Instant !== undefined, known));
    },

    async find(stream, epoch, seq) {
      const states: Entry['state'][] = ['pending', 'published', 'dead'];
      const numbered = outbox.where('stream', '==', stream).where('state', 'in', states);
      const { docs } = await guarded(() => numbered.where('epoch', '==', epoch).where('seq', '==', seq).limit(1).get());
      return docs[0] && storedOf<Entry>(docs[0])?.record;
    },

    async *dueStreams(nowMs) {
      const due = pendingOnes.where('nextAttemptAt', '<=', new Date(nowMs)).orderBy('stream').orderBy('nextAttemptAt').select('stream');
      const pageOf = due.limit(duePage);
      let page = await guarded(() => pageOf.where('stream', '>=', '').get());
      for (;;) {
        const streams = page.docs.map((document) => String(document.get('stream')));
        yield* new Set(streams);
        const last = streams.at(-1);
        if (last === undefined || page.size < duePage) return;
        // Past all that the last one has.
        page = await guarded(() => pageOf.where('stream', '>', last).get());
      }
    },

    pending: (stream, limit) =>
      found(
        stream,
        pendingOnes
          .where('stream', '==', stream)
          .orderBy('epoch')
          .orderBy('seq')
          .limit(limit)
          .select(...pendingFields),
      ),

    dueUnordered(nowMs, limit) {
      const due = pendingOnes.where('stream', '==', '').where('nextAttemptAt', '<=', new Date(nowMs)).orderBy('nextAttemptAt');
      return found('', due.limit(limit).select(...pendingFields));
    },

    async claimUnordered(entries, nextAttemptAtMs) {
      const batch = db.batch();
      const claimed = entries.map(({ id, entry }) => ({ id, entry: { ...entry, attempts: entry.attempts + 1, nextAttemptAtMs } }));
      entries.forEach(({ id, version }, index) => {
        const attempts = claimed[index]?.entry.attempts;
        batch.update(outbox.doc(id), { attempts, nextAttemptAt: new Date(nextAttemptAtMs) }, ifStill(version));
      });
      let versions: string[] = [];
      const applied = await unlessConflict(async () => {
        versions = await committed(batch, Instant !== undefined, known);
      });
      return applied ? claimed.map((one, index) => ({ ...one, version: versions[index] ?? '' })) : undefined;
    },

    async note({ id, version }, change) {
      // A dead one is due no more; null is not found by what is due.
      const fields = 'state' in change ? { ...change, nextAttemptAt: null } : fieldsOf(change, clock, 'forever');
      await unlessConflict(() => outbox.doc(id).update(fields, ifStill(version)));
    },

    watch(fromMs, onNext, onError) {
      // Published ones have no such instant, and dead ones null.
      const next = outbox.where('nextAttemptAt', '>=', new Date(fromMs)).orderBy('nextAttemptAt').limit(1);
      return next.onSnapshot(({ docs: [first] }) => onNext((first?.get('nextAttemptAt') as Timestamp | undefined)?.toMillis()), onError);
    },
  };
}

/** @throws RECORD_UNREADABLE */
function stateOf(snapshot: DocumentSnapshot | undefined): CounterState {
  const stored = snapshot && storedOf<Counter>(snapshot);
  if (!stored) return { absentAtMs: snapshot?.readTime.toMillis() ?? 0 };
  const fault = counterFault(stored.record);
  if (fault === undefined) return { counter: stored.record, version: stored.version };
  throw new ToolkitError('RECORD_UNREADABLE', `the document ${snapshot.ref.path} is no counter of a stream: ${fault}`);
}
