import { randomUUID } from 'node:crypto';
import { invalidArgument, type RpcError } from '../grpc.ts';
import type { Time } from '../time.ts';
import type { Timestamp } from './instants.ts';
import type { DatabaseJournal, KeptOutcome } from './journaled.ts';
import type { WriteResult } from './writes.ts';

export type CommitResponse = { readonly writeResults: readonly WriteResult[]; readonly commitTime: Timestamp };

/** What the commit of a transaction answers, again and again. */
export type Outcome =
  | { readonly kind: 'committed'; readonly response: CommitResponse }
  | { readonly kind: 'refused'; readonly error: RpcError };

export type Transaction = {
  readonly id: string;
  /** Set for a read-only transaction: the instant that all of its reads see. */
  readonly snapshotAtMicros: number | undefined;
  readonly startedAtMs: number;
  usedAtMs: number;
  readonly whenEnded: Set<() => void>;
};

/** How long a transaction may go unused, and how long it may take in all. */
const idleMs = 60_000;
const totalMs = 270_000;
/** A client tries a commit again, with the same id, for up to ten minutes. */
const rememberedMs = 600_000;
/** Nor do that many others commit between its two tries, and a busy hour must not fill the memory. */
const mostRemembered = 20_000;

export type Transactions = {
  begin(snapshotAtMicros?: number): Transaction;
  /** @throws RpcError the outcome of a transaction that was refused; INVALID_ARGUMENT for one that is over or unknown */
  live(id: string): Transaction;
  outcomeOf(id: string): Outcome | undefined;
  /** Releases what the transaction holds; one without an outcome is as if it had never been. */
  end(transaction: Transaction, outcome?: Outcome): void;
  /** The same for an id, if it is that of a live one. */
  endById(id: string): void;
  /** The earliest instant that a live read-only transaction sees. */
  oldestSnapshotMicros(): number | undefined;
  /** How many are live. */
  count(): number;
  forgetOutcomes(): void;
  close(): void;
};

export type TransactionsParts = {
  readonly time: Time;
  readonly journal: DatabaseJournal;
  readonly kept: readonly KeptOutcome[];
  readonly whenEnded: (transaction: Transaction) => void;
};

export function createTransactions({ time, journal, kept, whenEnded }: TransactionsParts): Transactions {
  // Ids of an emulator that ran before on the same port must not meet ours.
  const prefix = randomUUID();
  let serial = 0;
  const live = new Map<string, { readonly transaction: Transaction; cancelExpiry: () => void }>();
  const outcomes = new Map<string, { readonly outcome: Outcome; readonly forgetAtMs: number }>();
  for (const { id, response, forgetAtMs } of kept) outcomes.set(id, { outcome: { kind: 'committed', response }, forgetAtMs });

  const expiresAtMs = ({ startedAtMs, usedAtMs }: Transaction) => Math.min(usedAtMs + idleMs, startedAtMs + totalMs);
  const end = (transaction: Transaction, outcome?: Outcome) => {
    const entry = live.get(transaction.id);
    if (!entry) return;
    entry.cancelExpiry();
    live.delete(transaction.id);
    if (outcome) remember(transaction.id, outcome);
    whenEnded(transaction);
    for (const notify of transaction.whenEnded) notify();
  };
  const remember = (id: string, outcome: Outcome) => {
    const nowMs = time.nowMs();
    for (const [other, { forgetAtMs }] of outcomes) {
      if (nowMs < forgetAtMs && outcomes.size < mostRemembered) break;
      forget(other);
    }
    const forgetAtMs = nowMs + rememberedMs;
    outcomes.set(id, { outcome, forgetAtMs });
    // One that was refused changed nothing: after a restart its id is unknown, which sends the client to a new run all the same.
    if (outcome.kind === 'committed') journal.remember({ id, response: outcome.response, forgetAtMs });
  };
  const forget = (id: string) => {
    outcomes.delete(id);
    journal.forget(id);
  };
  /** Reads move the end; the one timer looks again when it fires. */
  const watchExpiry = (transaction: Transaction): (() => void) =>
    time.at(expiresAtMs(transaction), () => {
      const entry = live.get(transaction.id);
      if (!entry) return;
      if (time.nowMs() >= expiresAtMs(transaction)) end(transaction);
      else entry.cancelExpiry = watchExpiry(transaction);
    });

  return {
    begin(snapshotAtMicros) {
      const nowMs = time.nowMs();
      const transaction: Transaction = {
        id: `${prefix}-${serial++}`,
        snapshotAtMicros,
        startedAtMs: nowMs,
        usedAtMs: nowMs,
        whenEnded: new Set(),
      };
      live.set(transaction.id, { transaction, cancelExpiry: watchExpiry(transaction) });
      return transaction;
    },
    live(id) {
      const transaction = live.get(id)?.transaction;
      if (transaction && time.nowMs() < expiresAtMs(transaction)) {
        transaction.usedAtMs = time.nowMs();
        return transaction;
      }
      const outcome = outcomes.get(id)?.outcome;
      if (outcome?.kind === 'refused') throw outcome.error;
      throw invalidArgument('The referenced transaction has expired or is no longer valid.');
    },
    outcomeOf: (id) => outcomes.get(id)?.outcome,
    end,
    endById(id) {
      const entry = live.get(id);
      if (entry) end(entry.transaction);
    },
    oldestSnapshotMicros() {
      let oldest: number | undefined;
      for (const { transaction } of live.values()) {
        const { snapshotAtMicros } = transaction;
        if (snapshotAtMicros !== undefined) oldest = Math.min(oldest ?? snapshotAtMicros, snapshotAtMicros);
      }
      return oldest;
    },
    count: () => live.size,
    forgetOutcomes() {
      for (const id of outcomes.keys()) forget(id);
    },
    close() {
      for (const { cancelExpiry } of live.values()) cancelExpiry();
      live.clear();
    },
  };
}
