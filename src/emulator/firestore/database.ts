import { aborted, invalidArgument, RpcError, status, unimplemented } from '../grpc.ts';
import type { Time } from '../time.ts';
import { type Change, createDocuments, type Documents, type StoredDocument } from './documents.ts';
import { microsOf, type Timestamp, timestampOf } from './instants.ts';
import type { DatabaseJournal, KeptDatabase } from './journaled.ts';
import { type QueryPlan, type QueryResult, runQuery, takesPart } from './query.ts';
import { createReadLocks } from './read-locks.ts';
import { type CommitResponse, createTransactions, type Outcome, type Transaction } from './transactions.ts';
import { type CommitPlan, planCommit, type Write } from './writes.ts';

export type TransactionOptions =
  | { readonly mode?: 'readWrite' }
  | { readonly mode: 'readOnly'; readonly readOnly: { readonly readTime: Timestamp | null } };

/** Which version of the data a read wants to see; the fields of the wire, empty bytes being absent. */
export type Consistency = {
  readonly transaction?: Buffer;
  readonly newTransaction?: TransactionOptions | null;
  readonly readTime?: Timestamp | null;
};

/** One read: everything it gets is of the same instant. */
export type Reader = {
  readonly readTime: Timestamp;
  /** The id of a transaction that this read began; else empty. */
  readonly begun: Buffer;
  get(name: string): StoredDocument | undefined;
  query(plan: QueryPlan): QueryResult;
};

export type Database = {
  read(consistency: Consistency): Reader;
  begin(options: TransactionOptions | null): Buffer;
  /** At once, unless a live transaction has read what a commit without a transaction writes. */
  commit(writes: readonly Write[], transaction: Buffer): CommitResponse | Promise<CommitResponse>;
  rollback(transaction: Buffer): void;
  /** Called with what each commit changes, right after it; returns the removal. */
  watch(watcher: Watcher): () => void;
  /** How many commits wait for a transaction to end. */
  waiting(): number;
  liveTransactions(): number;
  readonly documents: Documents;
  /** Ends what is live or waits. */
  close(): void;
  /** Closes, and takes everything out of the journal. */
  erase(): void;
};

export type Watcher = (changes: readonly Change[], commitAtMicros: number) => void;

export type DatabaseParts = {
  readonly name: string;
  readonly time: Time;
  readonly journal: DatabaseJournal;
  /** What was there when the process before ended. */
  readonly kept?: KeptDatabase | undefined;
  /** How long a commit without a transaction waits for transactions that have read what it writes. */
  readonly lockTimeoutMs: number;
  /** Whether this commit of a transaction is to be refused on purpose. */
  readonly abortsNext: () => boolean;
};

const contention = (): RpcError => aborted('Too much contention on these documents. Please try again.');

/**
 * One database with its transactions.
 *
 * A transaction reads the present and remembers what it read. Whoever commits first wins: the commit ends every other transaction that
 * has read what it changes, so a live one has only read what still holds, and its commit is as if all of it happened at that instant.
 * Only a commit without a transaction waits, for those that had read before it came; it holds nothing meanwhile, so nothing deadlocks.
 */
export function createDatabase({ name, time, journal, kept, lockTimeoutMs, abortsNext }: DatabaseParts): Database {
  /** The latest instant that a commit or a read has named: no later commit may bear it. */
  let namedAtMicros = kept?.committedAtMicros ?? 0;
  const documents = createDocuments(kept?.documents, namedAtMicros);
  const locks = createReadLocks<Transaction>();
  const transactions = createTransactions({
    time,
    journal,
    kept: kept?.outcomes ?? [],
    whenEnded(transaction) {
      locks.release(transaction);
      if (transaction.snapshotAtMicros !== undefined) documents.forgetPast(transactions.oldestSnapshotMicros());
    },
  });
  const watchers = new Set<Watcher>();

  const presentMicros = () => {
    namedAtMicros = Math.max(Math.floor(time.nowMs() * 1_000), namedAtMicros);
    return namedAtMicros;
  };
  const plan = (writes: readonly Write[]) =>
    planCommit(name, writes, documents.get, Math.max(Math.floor(time.nowMs() * 1_000), namedAtMicros + 1));

  const apply = ({ changes, results, commitAtMicros }: CommitPlan): CommitResponse => {
    namedAtMicros = commitAtMicros;
    documents.apply(changes.values(), commitAtMicros, transactions.oldestSnapshotMicros() !== undefined);
    journal.commit(changes.values(), commitAtMicros);
    const doomed = locks.holdersOf(changes.values());
    if (doomed.size > 0) {
      const lost: Outcome = { kind: 'refused', error: contention() };
      for (const holder of doomed) transactions.end(holder, lost);
    }
    if (watchers.size > 0) {
      const made = [...changes.values()].filter(({ before, after }) => before !== after);
      for (const watcher of watchers) watcher(made, commitAtMicros);
    }
    return { writeResults: results, commitTime: timestampOf(commitAtMicros) };
  };

  /** How to turn away each commit that waits. */
  const waiting = new Set<(error: RpcError) => void>();
  const whenEnded = async (holders: ReadonlySet<Transaction>): Promise<void> => {
    const ends = [...holders].map((holder) => new Promise<void>((resolve) => holder.whenEnded.add(resolve)));
    const { promise: turnedAway, reject } = Promise.withResolvers<never>();
    const cancelTimeout = time.after(lockTimeoutMs, () => reject(aborted('Transaction lock timeout.')));
    waiting.add(reject);
    try {
      await Promise.race([Promise.all(ends), turnedAway]);
    } finally {
      waiting.delete(reject);
      cancelTimeout();
    }
  };

  const commitAlone = (writes: readonly Write[]): CommitResponse | Promise<CommitResponse> => {
    const planned = plan(writes);
    const holders = locks.holdersOf(planned.changes.values());
    return holders.size === 0 ? apply(planned) : whenEnded(holders).then(() => apply(plan(writes)));
  };

  const commitTransaction = (writes: readonly Write[], id: string): CommitResponse => {
    const outcome = transactions.outcomeOf(id);
    if (outcome?.kind === 'committed') return outcome.response;
    const transaction = transactions.live(id);
    try {
      if (abortsNext()) throw contention();
      if (transaction.snapshotAtMicros !== undefined && writes.length > 0) throw invalidArgument('a read-only transaction cannot write');
      const planned = plan(writes);
      // Its own locks go first: a transaction does not stand in its own way.
      locks.release(transaction);
      const response = apply(planned);
      transactions.end(transaction, { kind: 'committed', response });
      return response;
    } catch (error) {
      if (error instanceof RpcError) transactions.end(transaction, { kind: 'refused', error });
      throw error;
    }
  };

  const snapshotMicros = (readTime: Timestamp): number => {
    const atMicros = microsOf(readTime);
    if (atMicros > presentMicros()) throw invalidArgument('read_time lies in the future');
    if (atMicros < documents.knownSinceMicros()) throw unimplemented('a read_time before the last change of the database');
    return atMicros;
  };
  const begin = (options: TransactionOptions | null | undefined): Transaction => {
    if (options?.mode !== 'readOnly') return transactions.begin();
    const { readTime } = options.readOnly;
    return transactions.begin(readTime ? snapshotMicros(readTime) : presentMicros());
  };

  const presentReader = (): Reader => ({
    readTime: timestampOf(presentMicros()),
    begun: Buffer.alloc(0),
    get: documents.get,
    query: (queryPlan) => runQuery(queryPlan, documents.scan(queryPlan.scope, queryPlan.equalities)),
  });
  const snapshotReader = (atMicros: number): Reader => ({
    readTime: timestampOf(atMicros),
    begun: Buffer.alloc(0),
    get: (document) => documents.getAt(document, atMicros),
    query: (queryPlan) => runQuery(queryPlan, documents.scanAt(queryPlan.scope, atMicros)),
  });
  const transactionReader = (transaction: Transaction): Reader => {
    if (transaction.snapshotAtMicros !== undefined) return snapshotReader(transaction.snapshotAtMicros);
    return {
      ...presentReader(),
      get(document) {
        locks.lockDocument(transaction, document);
        return documents.get(document);
      },
      query(queryPlan) {
        const result = runQuery(queryPlan, documents.scan(queryPlan.scope, queryPlan.equalities));
        locks.lockResult(transaction, takesPart(queryPlan, result.last));
        return result;
      },
    };
  };

  const close = () => {
    transactions.close();
    for (const turnAway of waiting) turnAway(new RpcError(status.UNAVAILABLE, `the database ${name} was closed`));
  };

  return {
    documents,
    read({ transaction, newTransaction, readTime }) {
      if (newTransaction) {
        const begun = begin(newTransaction);
        return { ...transactionReader(begun), begun: Buffer.from(begun.id) };
      }
      if (transaction?.length) return transactionReader(transactions.live(transaction.toString()));
      return readTime ? snapshotReader(snapshotMicros(readTime)) : presentReader();
    },
    begin: (options) => Buffer.from(begin(options).id),
    commit: (writes, transaction) => (transaction.length > 0 ? commitTransaction(writes, transaction.toString()) : commitAlone(writes)),
    rollback: (transaction) => transactions.endById(transaction.toString()),
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    waiting: () => waiting.size,
    liveTransactions: transactions.count,
    close,
    erase() {
      close();
      transactions.forgetOutcomes();
      journal.erase(documents.all());
    },
  };
}
