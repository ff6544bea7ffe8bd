import type { SequenceRef } from '../message.ts';
import type { Stored, Version } from '../ports.ts';
import { deadLetter, type Verdict } from '../verdict.ts';

/** What the store holds about one message for one consumer (**wire**; instants end in `Ms` here and are the store's own there). */
export type DedupRecord = {
  /** Format. */
  readonly v: 1;
  readonly rev: number;
  readonly state: 'running' | 'done' | 'failed';
  readonly runId: string;
  readonly attempts: number;
  readonly leaseMs: number;
  /** How long after its last write a record that has ended still counts. */
  readonly ttlMs: number;
  readonly key: string;
  readonly fingerprint: string;
  readonly seqRef: SequenceRef | null;
  readonly firstSeenAtMs: number;
  readonly result: string | null;
};

/** One delivery that asks for a key. */
export type Claim = Pick<DedupRecord, 'runId' | 'key' | 'fingerprint' | 'seqRef' | 'leaseMs' | 'ttlMs'> & {
  /** 0: no limit. */
  readonly maxAttempts: number;
  /** By the worker's clock; only for people to read. */
  readonly seenAtMs: number;
};

export type ClaimDecision =
  | { readonly kind: 'run'; readonly write: DedupRecord }
  /** The claim was written by this very delivery, though its answer was lost. */
  | { readonly kind: 'claimed'; readonly record: DedupRecord; readonly version: Version }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'busy'; readonly retryAfterMs: number }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'exhausted' };

/**
 * Decides whether this delivery runs (protocol 1.2).
 *
 * @param current what the store holds, with the store's own clock: `writtenAtMs` and `nowMs`, both of one read
 */
export function decideClaim(current: Stored<DedupRecord> | undefined, claim: Claim): ClaimDecision {
  if (!current) return { kind: 'run', write: running(claim, undefined, 1) };
  const { record, version, writtenAtMs, nowMs } = current;
  if (record.state === 'running') {
    const leaseEndsAtMs = writtenAtMs + record.leaseMs;
    if (nowMs >= leaseEndsAtMs) return { kind: 'run', write: running(claim, record, record.attempts + 1) };
    return record.runId === claim.runId ? { kind: 'claimed', record, version } : { kind: 'busy', retryAfterMs: leaseEndsAtMs - nowMs };
  }
  if (nowMs >= writtenAtMs + record.ttlMs) return { kind: 'run', write: running(claim, record, 1) };
  if (record.state === 'done') return record.fingerprint === claim.fingerprint ? { kind: 'duplicate' } : { kind: 'conflict' };
  if (claim.maxAttempts > 0 && record.attempts >= claim.maxAttempts) return { kind: 'exhausted' };
  return { kind: 'run', write: running(claim, record, record.attempts + 1) };
}

export type InboxDecision =
  | { readonly kind: 'run'; readonly write: DedupRecord }
  /** Committed by this very delivery, though its answer was lost. */
  | { readonly kind: 'committed' }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'conflict' };

/** Decides inside the transaction that will also hold the effect (protocol 2); a running or failed record is no obstacle there. */
export function decideInbox(current: Stored<DedupRecord> | undefined, claim: Claim): InboxDecision {
  if (current?.record.state === 'done' && current.nowMs < current.writtenAtMs + current.record.ttlMs) {
    if (current.record.runId === claim.runId) return { kind: 'committed' };
    return current.record.fingerprint === claim.fingerprint ? { kind: 'duplicate' } : { kind: 'conflict' };
  }
  return { kind: 'run', write: { ...running(claim, current?.record, 1), state: 'done' } };
}

function running(claim: Claim, before: DedupRecord | undefined, attempts: number): DedupRecord {
  const { runId, key, fingerprint, seqRef, leaseMs, ttlMs, seenAtMs } = claim;
  const rev = (before?.rev ?? 0) + 1;
  const firstSeenAtMs = before?.firstSeenAtMs ?? seenAtMs;
  return { v: 1, rev, state: 'running', runId, attempts, leaseMs, ttlMs, key, fingerprint, seqRef, firstSeenAtMs, result: null };
}

export const conflictVerdict = (claim: Claim): Verdict =>
  deadLetter('conflict', `another message is done under this key; this one has fingerprint ${claim.fingerprint}`);
