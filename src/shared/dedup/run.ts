import { textOf } from '../errors.ts';
import { holdLease, type Lease } from '../lease.ts';
import type { Telemetry } from '../metrics.ts';
import type { RecordStore, Stored, System } from '../ports.ts';
import { settledPut } from '../settled.ts';
import { type DedupClaim, unreadableRecord } from './claim.ts';
import { type Claim, type ClaimDecision, type DedupRecord, decideClaim } from './decide.ts';

/** One run, while it holds its key. */
export type Run = Pick<Lease<DedupRecord>, 'signal' | 'fence'>;

/** How the work of a run ended: `released` gives the key back without counting an attempt. */
export type Ended<T> = { readonly value: T; readonly state: 'done' | 'failed' | 'released'; readonly result: string | null };

export type Outcome<T> =
  | { readonly kind: 'ended'; readonly ended: Ended<T> }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'leaseLost' }
  /** Nobody can say whether the run before had its effects. */
  | { readonly kind: 'escalated'; readonly record: DedupRecord }
  | Exclude<ClaimDecision, { kind: 'run' | 'claimed' | 'abandoned' | 'unreadable' }>;

/** What became of a dead run with effects outside: `done` it had them, `runAgain` it had none, `escalate` nobody knows. */
export type Reconcile = (record: DedupRecord) => Promise<'done' | 'runAgain' | 'escalate'>;

export type RunParts = {
  readonly store: RecordStore<DedupRecord>;
  readonly system: System;
  readonly telemetry: Telemetry;
  readonly storeTimeoutMs: number;
  readonly reconcile?: Reconcile | undefined;
};

/**
 * Work under a key: claim, run, end (protocol 1.3). The end is written before the outcome is told.
 * @returns a function that @throws STORE_UNAVAILABLE, RECORD_UNREADABLE, and what `reconcile` throws
 */
export function createRunner<Asked extends DedupClaim, T>(
  parts: RunParts,
  work: (asked: Asked, run: Run) => Promise<Ended<T>>,
): (asked: Asked) => Promise<Outcome<T>> {
  const { log, count } = parts.telemetry;

  const reconciled = async (record: DedupRecord) => {
    log.warn({ key: record.key, messageId: record.messageId, attempts: record.attempts }, 'a run with effects outside died');
    const answer = parts.reconcile ? await parts.reconcile(record) : 'escalate';
    const decision = { done: 'done', runAgain: 'run_again', escalate: 'escalated' }[answer];
    if (decision === undefined) throw new Error(`reconcile answered ${JSON.stringify(answer)}; it must be done, runAgain or escalate`);
    count('ptk.dedup.abandoned', { decision });
    return answer;
  };

  const held = async (asked: Asked, lease: Lease<DedupRecord>): Promise<Outcome<T>> => {
    const { claim } = asked;
    const free = (attemptsBack: number) =>
      lease
        .end((record) => ({ ...record, state: 'failed', attempts: record.attempts - attemptsBack }), claim.ttlMs)
        .catch((error: unknown) => log.warn({ key: claim.key, reason: textOf(error) }, 'key not freed; its lease will end'));
    let ended: Ended<T>;
    try {
      ended = await work(asked, lease);
    } catch (error) {
      await free(0);
      return { kind: 'threw', error };
    }
    if (ended.state !== 'done') {
      await free(ended.state === 'released' ? 1 : 0);
      return { kind: 'ended', ended };
    }
    const { result } = ended;
    const written = await lease.end((record) => ({ ...record, state: 'done', result }), claim.ttlMs);
    if (written === 'recordLost') {
      count('ptk.dedup.record_lost');
      log.error({ key: claim.key, messageId: claim.messageId }, 'the store lost the claim while its handler ran');
    }
    if (written === 'lost') {
      count('ptk.dedup.lease_lost');
      count('ptk.dedup.duplicates', { kind: 'zombie' });
      log.error({ key: claim.key, messageId: claim.messageId }, 'another run took the key while this one went on');
      return { kind: 'leaseLost' };
    }
    return { kind: 'ended', ended };
  };

  /** One put where nothing is stored; each lost race costs a decision on what the winner wrote. */
  return async (asked) => {
    const { documentId: key, claim } = asked;
    const keepMs = claim.ttlMs + claim.leaseMs;
    let current: Stored<DedupRecord> | undefined;
    let asking: Claim = claim;
    let sentAtMs = 0;
    for (;;) {
      const decision = decideClaim(current, asking);
      let record: DedupRecord;
      switch (decision.kind) {
        case 'run':
          record = decision.write;
          break;
        case 'claimed':
          return await held(asked, holdLease(parts, log, { ...decision, key, sentAtMs, keepMs }));
        case 'unreadable':
          throw unreadableRecord(key, decision.found);
        case 'abandoned': {
          const answer = await reconciled(decision.record);
          if (answer === 'escalate') return { kind: 'escalated', record: decision.record };
          if (answer === 'runAgain') {
            asking = { ...claim, effects: 'internal' };
            continue;
          }
          record = { ...decision.record, rev: decision.record.rev + 1, runId: claim.runId, state: 'done' };
          break;
        }
        default:
          return decision;
      }
      const put = await settledPut(parts, key, record, current?.version ?? 'absent', keepMs);
      if (put.kind === 'applied') {
        if (record.state === 'done') return { kind: 'duplicate', record };
        return await held(asked, holdLease(parts, log, { key, record, version: put.version, sentAtMs: put.sentAtMs, keepMs }));
      }
      current = put.current;
      asking = claim;
      sentAtMs = put.sentAtMs;
    }
  };
}
