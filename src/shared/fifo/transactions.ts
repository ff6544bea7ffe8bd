import type { DedupRecord } from '../dedup/decide.ts';
import type { Stored } from '../ports.ts';
import type { Cursor } from './cursor.ts';
import type { Parked, Place } from './store.ts';

/** What a transaction leaves: where the cursor goes, and what leaves the park or comes to it. */
export type CursorWrite = { readonly cursor: Cursor; readonly unpark: readonly Place[]; readonly park?: Parked };

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
   * One try of one transaction: reads the cursor, does the work, writes what the kept steps wrote and then the cursor, and commits. Where
   * the work returns nothing, nothing is written.
   * @returns `contended` when another transaction won: nothing was written
   * @throws STORE_UNAVAILABLE, and then the commit may have been applied; or the error of the work or of a write that a handler made
   */
  transact(
    cursorKey: string,
    work: (cursor: Stored<Cursor> | undefined, steps: Steps<Transaction>) => Promise<CursorWrite | undefined>,
  ): Promise<'committed' | 'nothing' | 'contended'>;
}
