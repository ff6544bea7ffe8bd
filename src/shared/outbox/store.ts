import type { Version } from '../ports.ts';
import type { Counter, CounterState, Entry, Numbering, Unnumbered } from './decide.ts';

export type PendingEntry = { readonly entry: Entry; readonly version: Version };

/** Counters and their entries, which change together. */
export interface StreamStore {
  /** One snapshot of the counter and of what is stored under the keys, in their order. @throws STORE_UNAVAILABLE */
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
  /** A fact, so written without a condition; the body goes, the number stays for `keepMs`. An entry that is gone is no error. */
  markPublished(entries: readonly Entry[], messageIds: readonly string[], keepMs: number): Promise<void>;
  /** All streams that have entries due for a relay at that instant: however many one of them has, it hides no other. */
  dueStreams(nowMs: number): Promise<readonly string[]>;
  /** Pending entries of a stream from the lowest number. */
  pending(stream: string, limit: number): Promise<readonly PendingEntry[]>;
  /** Changes an entry unless it changed since: a failure must never set a published entry back. */
  note(pending: PendingEntry, change: Partial<Pick<Entry, 'state' | 'attempts' | 'nextAttemptAtMs'>>): Promise<void>;
}
