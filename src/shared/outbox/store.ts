import { hash } from '../names.ts';
import type { Version } from '../ports.ts';
import type { Counter, CounterState, Entry, Numbering, Unnumbered } from './decide.ts';

export type PendingEntry = { readonly id: string; readonly entry: Entry; readonly version: Version };

/** The document id of a stream's entry (**wire**): one key has one number in a stream. */
export const entryIdOf = ({ stream, key }: Pick<Entry, 'stream' | 'key'>): string => `${hash(stream)}~${hash(key)}`;
/** The same of an entry without a stream; of two senders each has its own under a key. */
export const unorderedIdOf = ({ topic, key }: Pick<Entry, 'topic' | 'key'>, sender: string): string =>
  `~${hash(`${topic} ${sender}`)}~${hash(key)}`;

/** An entry that is in its topic, under the id that it has there. */
export type Mark = { readonly entry: Entry; readonly id: string; readonly messageId: string };

/** Counters and their entries, which change together; `Transaction` is the store's own, for those who bring one. */
export interface StreamStore<Transaction = unknown> {
  /**
   * One snapshot of the counter and of what is stored under the keys, in their order.
   * @throws STORE_UNAVAILABLE, RECORD_UNREADABLE for a counter that is none
   */
  look(
    stream: string,
    group: readonly Pick<Unnumbered, 'key'>[],
  ): Promise<{ state: CounterState; entries: readonly (Entry | undefined)[] }>;
  /**
   * One commit: the counter moves from the expected version and every entry is created.
   * @returns the counter's new version, or `undefined` when a precondition did not hold (which may be this commit's own, repeated)
   * @throws STORE_UNAVAILABLE, and then it may have been applied
   */
  append(stream: string, numbering: Numbering): Promise<{ counter: Counter; version: Version } | undefined>;
  /** `look` as a read of the transaction. @throws what the transaction throws, RECORD_UNREADABLE */
  lookWithin(transaction: Transaction, stream: string, group: readonly Pick<Unnumbered, 'key'>[]): ReturnType<StreamStore['look']>;
  /** `append` as writes of the transaction, after which it reads no more. */
  appendWithin(transaction: Transaction, stream: string, numbering: Numbering): void;
  /** Writes an entry without a stream in the transaction, over one of the same id. */
  setWithin(transaction: Transaction, id: string, entry: Entry): void;
  /** A fact, so written without a condition; the body goes unless it is to be kept, the number stays for `keepMs`. */
  markPublished(marks: readonly Mark[], keepMs: number): Promise<void>;
  /** The entry that has a number, whatever became of it. */
  find(stream: string, epoch: number, seq: number): Promise<Entry | undefined>;
  /**
   * All streams that have entries due for a relay at that instant, and `''` where entries without a stream are: however many one of them
   * has, it hides no other and costs no more than a page of reads.
   */
  dueStreams(nowMs: number): AsyncIterable<string>;
  /** Pending entries of a stream from the lowest number. */
  pending(stream: string, limit: number): Promise<readonly PendingEntry[]>;
  /** Entries without a stream that are due, the longest due first. */
  dueUnordered(nowMs: number, limit: number): Promise<readonly PendingEntry[]>;
  /**
   * One commit: each entry has one attempt more and is not due before the instant.
   * @returns them as they are now, or `undefined` when one of them changed meanwhile: then none is claimed
   */
  claimUnordered(entries: readonly PendingEntry[], nextAttemptAtMs: number): Promise<readonly PendingEntry[] | undefined>;
  /** Changes an entry unless it changed since: a failure must never set a published entry back. */
  note(pending: PendingEntry, change: { state: 'dead' } | Pick<Entry, 'attempts' | 'nextAttemptAtMs'>): Promise<void>;
  /**
   * Tells, now and at each change, when the next pending entry is due of those that are not due before the instant; `undefined`: there
   * is none.
   * @returns the stop
   */
  watch(fromMs: number, onNext: (dueAtMs: number | undefined) => void, onError: (error: unknown) => void): () => void;
}
