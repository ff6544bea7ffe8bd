import type { DedupRecord } from '../dedup/decide.ts';
import type { Stored, Version } from '../ports.ts';
import type { Cursor } from './cursor.ts';
import type { Parked, Place } from './store.ts';

/** What a transaction leaves: where the cursor goes, and what leaves the park or comes to it. */
export type CursorWrite = {
  readonly cursor: Cursor;
  /** The version that the cursor still has to have. */
  readonly expected: Version;
  readonly unpark: readonly Place[];
  readonly park?: Parked;
};

/**
 * One transaction in which the handlers of several numbers read and write, one step each. What a step writes is kept until the end of
 * all, so the next one may still read.
 */
export type Steps<Transaction> = {
  /** For the next number's handler; nothing of it is written unless the step is kept. */
  begin(): Step<Transaction>;
};

export type Step<Transaction> = {
  readonly transaction: Transaction;
  /** The dedup record of a message, read in the transaction. */
  marker(documentId: string): Promise<Stored<DedupRecord> | undefined>;
  mark(documentId: string, record: DedupRecord, keepMs: number): void;
  /** It has read what an earlier step is to write, so it goes by what is no more: it belongs into the next transaction. */
  isStale(): boolean;
  keep(): void;
};

/** Cursors and the user's own documents in one transaction. */
export interface FifoTransactions<Transaction> {
  /**
   * One try of one transaction: does the work, writes what the kept steps wrote and then the cursor, and commits. The cursor is not read in it: a process that dies would leave it locked for a minute.
   * @returns `contended` when another transaction won: nothing was written
   * @throws STORE_UNAVAILABLE, and then the commit may have been applied; or the error of the work, or of a write that was refused
   */
  transact(cursorKey: string, work: (steps: Steps<Transaction>) => Promise<CursorWrite>): Promise<'committed' | 'contended'>;
}
