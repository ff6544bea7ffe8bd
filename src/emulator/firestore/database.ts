import { aborted, invalidArgument, RpcError, unimplemented } from '../grpc.ts';
import type { Time } from '../time.ts';
import { createDocuments, type Documents, type StoredDocument } from './documents.ts';
import { microsOf, type Timestamp, timestampOf } from './instants.ts';
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
  /** How many commits wait for a transaction to end. */
  waiting(): number;
  readonly documents: Documents;
  close(): void;
};

export type DatabaseParts = {
  readonly name: string;
  readonly time: Time;
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
export function createDatabase({ name, time, lockTimeoutMs, abortsNext }: DatabaseParts): Database {
  const documents = createDocuments();
  const locks = createReadLocks<Transaction>();
  const transactions = createTransactions(time, (transaction) => {
    locks.release(transaction);
    if (transaction.snapshotAtMicros !== undefined) documents.forgetPast(transactions.oldestSnapshotMicros());
  });
  /** The latest instant that a commit or a read has named: no later commit may bear it. */
  let namedAtMicros = 0;

  const presentMicros = () => {
    namedAtMicros = Math.max(Math.floor(time.nowMs() * 1_000), namedAtMicros);
    return namedAtMicros;
  };
  const plan = (writes: readonly Write[]) =>
    planCommit(name, writes, documents.get, Math.max(Math.floor(time.nowMs() * 1_000), namedAtMicros + 1));

  const apply = ({ changes, results, commitAtMicros }: CommitPlan): CommitResponse => {
    const lost: Outcome = { kind: 'refused', error: contention() };
    namedAtMicros = commitAtMicros;
    documents.apply(changes.values(), commitAtMicros, transactions.oldestSnapshotMicros() !== undefined);
    for (const holder of locks.holdersOf(changes.values())) transactions.end(holder, lost);
    return { writeResults: results, commitTime: timestampOf(commitAtMicros) };
  };

  let waiting = 0;
  const whenEnded = async (holders: ReadonlySet<Transaction>): Promise<void> => {
    const ends = [...holders].map((holder) => new Promise<void>((resolve) => holder.whenEnded.add(resolve)));
    let cancelTimeout = () => {};
    const timeout = new Promise<never>((_, reject) => {
      cancelTimeout = time.after(lockTimeoutMs, () => reject(aborted('Transaction lock timeout.')));
    });
    waiting += 1;
    try {
      await Promise.race([Promise.all(ends), timeout]);
    } finally {
      waiting -= 1;
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
    query: (queryPlan) => runQuery(queryPlan, documents.scan(queryPlan.scope)),
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
        const result = runQuery(queryPlan, documents.scan(queryPlan.scope));
        locks.lockResult(transaction, takesPart(queryPlan, result.last));
        return result;
      },
    };
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
    waiting: () => waiting,
    close: transactions.close,
  };
}
