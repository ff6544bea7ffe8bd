import { textOf } from '../errors.ts';
import { holdLease } from '../lease.ts';
import type { Telemetry } from '../metrics.ts';
import type { RecordStore, Stored, System, Version } from '../ports.ts';
import { settledPut } from '../settled.ts';
import { type DedupClaim, unreadableRecord } from './claim.ts';
import { type Claim, type ClaimDecision, type DedupRecord, decideClaim } from './decide.ts';

/** One run, while it holds its key. */
export type Run = {
  /** Aborts when the lease is over or another run took over. */
  readonly signal: () => AbortSignal;
  /** Grows with every run of the key. */
  readonly fence: number;
};

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
export function createRunner(parts: RunParts): <T>(claim: DedupClaim, work: (run: Run) => Promise<Ended<T>>) => Promise<Outcome<T>> {
  const { clock } = parts.system;
  const { log, count } = parts.telemetry;

  /** Once the claim is held: one put where nothing is stored; each lost race costs a decision on what the winner wrote. */
  const take = async ({ documentId, claim }: DedupClaim) => {
    const keepMs = claim.ttlMs + claim.leaseMs;
    let current: Stored<DedupRecord> | undefined;
    let asked: Claim = claim;
    let sentAtMs = clock.monotonicMs();
    const holding = (record: DedupRecord, version: Version) => {
      const lease = holdLease(parts, log, { key: documentId, record, version, sentAtMs, keepMs });
      return { kind: 'holding', lease, fence: record.rev } as const;
    };
    for (;;) {
      const decision = decideClaim(current, asked);
      if (decision.kind === 'claimed') return holding(decision.record, decision.version);
      if (decision.kind === 'unreadable') throw unreadableRecord(documentId, decision.found);
      let write: DedupRecord;
      if (decision.kind === 'abandoned') {
        const answer = await reconciled(decision.record);
        if (answer === 'escalate') return { kind: 'escalated', record: decision.record } as const;
        if (answer === 'runAgain') {
          asked = { ...claim, effects: 'internal' };
          continue;
        }
        write = { ...decision.record, rev: decision.record.rev + 1, runId: claim.runId, state: 'done' };
      } else if (decision.kind === 'run') write = decision.write;
      else return decision;
      sentAtMs = clock.monotonicMs();
      const put = await settledPut(parts, documentId, write, current?.version ?? 'absent', keepMs);
      if (put.kind === 'applied') {
        return write.state === 'done' ? ({ kind: 'duplicate', record: write } as const) : holding(write, put.version);
      }
      current = put.current;
      asked = claim;
    }
  };

  const reconciled = async (record: DedupRecord) => {
    log.warn({ key: record.key, messageId: record.messageId, attempts: record.attempts }, 'a run with effects outside died');
    const answer = parts.reconcile ? await parts.reconcile(record) : 'escalate';
    const decision = { done: 'done', runAgain: 'run_again', escalate: 'escalated' }[answer];
    if (decision === undefined) throw new Error(`reconcile answered ${JSON.stringify(answer)}; it must be done, runAgain or escalate`);
    count('ptk.dedup.abandoned', { decision });
    return answer;
  };

  return async (asked, work) => {
    const taken = await take(asked);
    if (taken.kind !== 'holding') return taken;
    const { lease, fence } = taken;
    const { claim } = asked;
    const free = (attemptsBack: number) =>
      lease
        .end((record) => ({ ...record, state: 'failed', attempts: record.attempts - attemptsBack }), claim.ttlMs)
        .catch((error: unknown) => log.warn({ key: claim.key, reason: textOf(error) }, 'key not freed; its lease will end'));
    const ended = await work({ signal: lease.signal, fence }).catch((error: unknown) => ({ error }));
    if ('error' in ended) {
      await free(0);
      return { kind: 'threw', error: ended.error };
    }
    if (ended.state !== 'done') {
      await free(ended.state === 'released' ? 1 : 0);
      return { kind: 'ended', ended };
    }
    const written = await lease.end((record) => ({ ...record, state: 'done', result: ended.result }), claim.ttlMs);
    if (written === 'recordLost') {
      count('ptk.dedup.record_lost');
      log.error({ key: claim.key, messageId: claim.messageId }, 'the store lost the claim while its handler ran');
    }
    if (written === 'lost') {
      count('ptk.dedup.lease_lost');
      count('ptk.dedup.duplicates', { kind: 'zombie' });
      log.error({ key: claim.key, messageId: claim.messageId }, 'another run took the key while this one went on');
    }
    return written === 'lost' ? { kind: 'leaseLost' } : { kind: 'ended', ended };
  };
}
