import type { RecordStore, Stored } from '../ports.ts';
import type { Histogram } from './lateness.ts';
import type { DelayRecord } from './ledger.ts';

export type DelayState = DelayRecord['state'];
/** Where a page of entries ended. */
export type Page = { readonly dueAtMs: number; readonly key: string };
export type Listed = { readonly key: string; readonly stored: Stored<DelayRecord> };

/** What is delayed under ids, each entry under `ledgerKeyOf(id)`. */
export interface DelayLedger extends RecordStore<DelayRecord> {
  /**
   * What is stored, and the store's clock, also where nothing is.
   * @throws STORE_UNAVAILABLE
   */
  look(key: string): Promise<{ readonly nowMs: number; readonly stored: Stored<DelayRecord> | undefined }>;
  /**
   * Entries in a state, the earliest due first and then by key, from behind a page on; `limit` at most.
   * @throws STORE_UNAVAILABLE
   */
  inState(state: DelayState, limit: number, after?: Page): Promise<readonly Listed[]>;
  /**
   * How many entries are in a state, and due before an instant where one is given.
   * @throws STORE_UNAVAILABLE
   */
  count(state: DelayState, dueBeforeMs?: number): Promise<number>;
}

/** How late the messages were that one counter, of a process, saw in the hour that begins at `hourAtMs`. */
export type LatenessHour = { readonly counter: string; readonly hourAtMs: number; readonly counts: Histogram };

/** How late messages were, for a week. Lost counts are a pity and no more. */
export interface LatenessStore {
  /**
   * Puts the counts in place of those that the same counter wrote of the same hour.
   * @throws STORE_UNAVAILABLE and then they may have been written, or may be later
   */
  put(hour: LatenessHour): Promise<void>;
  /**
   * The counts of each counter and hour that begins at the instant or later, in no order.
   * @throws STORE_UNAVAILABLE
   */
  since(fromMs: number): Promise<readonly Histogram[]>;
}
