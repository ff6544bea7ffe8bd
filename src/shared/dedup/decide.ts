import type { SequenceRef } from '../message.ts';
import type { Stored, Version } from '../ports.ts';

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
  /** Fingerprint of what an operator let this message replace; a copy of that one is a duplicate still. */
  readonly supersedes: string | null;
  readonly seqRef: SequenceRef | null;
  /** Of the delivery that ran last; empty where the work came with no message. */
  readonly messageId: string;
  /** Of the message's first publication; its own id where it made no hop. */
  readonly originId: string;
  readonly firstSeenAtMs: number;
  /** What the run returned, as `results.ts` writes it; null where it is not kept. */
  readonly result: string | null;
};

type Identity = 'runId' | 'key' | 'fingerprint' | 'seqRef' | 'messageId' | 'originId';

/** One delivery that asks for a key. */
export type Claim = Pick<DedupRecord, Identity | 'leaseMs' | 'ttlMs'> & {
  /** 0: no limit. */
  readonly maxAttempts: number;
  /** `external`: a run that died may have had its effect, and nothing here can undo or see it. */
  readonly effects: 'internal' | 'external';
  /** By the worker's clock; only for people to read. */
  readonly seenAtMs: number;
};

export type ClaimDecision =
  | { readonly kind: 'run'; readonly write: DedupRecord }
  /** The claim was written by this very delivery, though its answer was lost. */
  | { readonly kind: 'claimed'; readonly record: DedupRecord; readonly version: Version }
  | { readonly kind: 'duplicate'; readonly record: DedupRecord }
  | { readonly kind: 'busy'; readonly retryAfterMs: number }
  | { readonly kind: 'conflict'; readonly record: DedupRecord }
  | { readonly kind: 'exhausted' }
  /** A run with effects outside died: whether it had them is to be found out. */
  | { readonly kind: 'abandoned'; readonly record: DedupRecord }
  /** Of a format that this version does not read; `found` says which. */
  | { readonly kind: 'unreadable'; readonly found: string };

/**
 * Decides whether this delivery runs (protocol 1.2).
 *
 * @param current what the store holds, with the store's own clock: `writtenAtMs` and `nowMs`, both of one read
 */
export function decideClaim(current: Stored<DedupRecord> | undefined, claim: Claim): ClaimDecision {
  if (!current) return { kind: 'run', write: running(claim, undefined, 1) };
  const { record, version, writtenAtMs, nowMs } = current;
  const found = formatFault(record);
  if (found !== undefined) return { kind: 'unreadable', found };
  const isOver = record.state !== 'running' && nowMs >= writtenAtMs + record.ttlMs;
  if (isOver) return { kind: 'run', write: running(claim, { rev: record.rev }, 1) };
  if (record.supersedes === claim.fingerprint) return { kind: 'duplicate', record };
  if (record.state === 'running') {
    const leaseEndsAtMs = writtenAtMs + record.leaseMs;
    if (nowMs >= leaseEndsAtMs) {
      if (claim.effects === 'external') return { kind: 'abandoned', record };
      return { kind: 'run', write: running(claim, record, record.attempts + 1) };
    }
    return record.runId === claim.runId ? { kind: 'claimed', record, version } : { kind: 'busy', retryAfterMs: leaseEndsAtMs - nowMs };
  }
  if (record.state === 'done') return { kind: record.fingerprint === claim.fingerprint ? 'duplicate' : 'conflict', record };
  if (claim.maxAttempts > 0 && record.attempts >= claim.maxAttempts) return { kind: 'exhausted' };
  return { kind: 'run', write: running(claim, record, record.attempts + 1) };
}

export type InboxDecision =
  | { readonly kind: 'run'; readonly write: DedupRecord }
  /** Committed by this very delivery, though its answer was lost. */
  | { readonly kind: 'committed' }
  | Extract<ClaimDecision, { kind: 'duplicate' | 'conflict' | 'unreadable' }>;

/** Decides inside the transaction that will also hold the effect (protocol 2); a running or failed record is no obstacle there. */
export function decideInbox(current: Stored<DedupRecord> | undefined, claim: Claim): InboxDecision {
  if (!current) return { kind: 'run', write: { ...running(claim, undefined, 1), state: 'done' } };
  const { record, writtenAtMs, nowMs } = current;
  const found = formatFault(record);
  if (found !== undefined) return { kind: 'unreadable', found };
  if (nowMs >= writtenAtMs + record.ttlMs) return { kind: 'run', write: { ...running(claim, { rev: record.rev }, 1), state: 'done' } };
  if (record.supersedes === claim.fingerprint) return { kind: 'duplicate', record };
  if (record.state !== 'done') return { kind: 'run', write: { ...running(claim, record, 1), state: 'done' } };
  if (record.runId === claim.runId) return { kind: 'committed' };
  return { kind: record.fingerprint === claim.fingerprint ? 'duplicate' : 'conflict', record };
}

/** @param before what the key's life so far leaves to this run; of a life that is over, the revision alone */
function running(claim: Claim, before: Partial<DedupRecord> | undefined, attempts: number): DedupRecord {
  const { runId, key, fingerprint, seqRef, messageId, originId, leaseMs, ttlMs, seenAtMs } = claim;
  return {
    v: 1,
    rev: (before?.rev ?? 0) + 1,
    state: 'running',
    runId,
    attempts,
    leaseMs,
    ttlMs,
    key,
    fingerprint,
    supersedes: before?.supersedes ?? null,
    seqRef,
    messageId,
    originId,
    firstSeenAtMs: before?.firstSeenAtMs ?? seenAtMs,
    result: null,
  };
}

const states: readonly unknown[] = ['running', 'done', 'failed'];
const wholeFields = ['rev', 'attempts', 'leaseMs', 'ttlMs'] as const;
const textFields = ['runId', 'key', 'fingerprint'] as const;
const unfit = 'format 1 with missing fields';

/** What is stored may have been written by another version, or by something else altogether. */
function formatFault(record: DedupRecord): string | undefined {
  const fields: { readonly [Name in keyof DedupRecord]?: unknown } = record;
  if (fields.v !== 1) return `format ${typeof fields.v === 'number' ? fields.v : 'unknown'}`;
  for (const name of wholeFields) if (!Number.isInteger(fields[name])) return unfit;
  for (const name of textFields) if (typeof fields[name] !== 'string') return unfit;
  return states.includes(fields.state) ? undefined : unfit;
}

/** Why a delivery is a duplicate: which part of the system made the second copy. */
export type DuplicateKind = 'redelivery' | 'publisher_retry' | 'hop';
type Copy = Pick<DedupRecord, 'messageId' | 'originId'>;

/** The broker gives the same id again, a hop keeps the id of the first publication, and a publisher that tries again gets a new one. */
export function duplicateKind(first: Copy, second: Copy): DuplicateKind {
  if (first.messageId === second.messageId) return 'redelivery';
  return first.originId === second.originId ? 'hop' : 'publisher_retry';
}

/** What an operator says of a dead letter: let its message run, or hold what is stored for the truth. */
export type Redrive = 'accept-new' | 'keep-old';

export type RedriveDecision =
  /** Write this; then publish the message if it is to run. */
  | { readonly kind: 'write'; readonly write: DedupRecord; readonly runs: boolean }
  /** Nothing stands in its way: publish it. */
  | { readonly kind: 'publish' }
  /** As the operator wants it already. */
  | { readonly kind: 'settled' }
  | { readonly kind: 'busy'; readonly retryAfterMs: number }
  | { readonly kind: 'unreadable'; readonly found: string };

/** Decides what a redrive writes about the message of a dead letter, so that doing it twice is doing it once. */
export function decideRedrive(
  current: Stored<DedupRecord> | undefined,
  { fingerprint, runId, as }: { readonly fingerprint: string; readonly runId: string; readonly as: Redrive },
): RedriveDecision {
  if (!current) return { kind: as === 'accept-new' ? 'publish' : 'settled' };
  const { record, writtenAtMs, nowMs } = current;
  const found = formatFault(record);
  if (found !== undefined) return { kind: 'unreadable', found };
  const leftMs = record.state === 'running' ? writtenAtMs + record.leaseMs - nowMs : 0;
  if (leftMs > 0) return { kind: 'busy', retryAfterMs: leftMs };
  const isSame = record.fingerprint === fingerprint;
  const next = { ...record, rev: record.rev + 1, runId };
  if (as === 'keep-old') {
    if (record.state !== 'running') return { kind: 'settled' };
    return { kind: 'write', write: { ...next, state: 'done' }, runs: false };
  }
  if (isSame && record.state === 'done') return { kind: 'settled' };
  if (isSame && record.state === 'failed') return { kind: 'publish' };
  const supersedes = isSame ? record.supersedes : record.fingerprint;
  return { kind: 'write', write: { ...next, state: 'failed', attempts: 0, fingerprint, supersedes, result: null }, runs: true };
}
