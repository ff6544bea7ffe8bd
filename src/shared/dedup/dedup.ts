import { textOf } from '../errors.ts';
import { holdLease } from '../lease.ts';
import type { Message } from '../message.ts';
import { type Options, readOptions } from '../options.ts';
import type { Context, Handler, Log, RecordStore, Stored, VerdictHandler, Version } from '../ports.ts';
import { settledPut } from '../settled.ts';
import { ack, deadLetter, nack, neverThrowing, type Verdict, verdictOf, verdictOfError } from '../verdict.ts';
import { type Claimant, createClaims, type DedupClaim } from './claim.ts';
import { type Claim, conflictVerdict, type DedupRecord, decideClaim } from './decide.ts';
import { dedupOptions } from './options.ts';

export type DedupParts = Claimant & {
  readonly store: RecordStore<DedupRecord>;
  readonly log: Log;
  readonly options?: Partial<Options<typeof dedupOptions>>;
};

/**
 * Runs a handler once per message: claim, run, end (protocol 1). A duplicate of a finished message is acked, one of a running
 * message is not; a failed handler frees the key.
 * @throws INVALID_SETTINGS here, and never while messages are handled
 */
export function createDedup(parts: DedupParts): (handle: Handler) => VerdictHandler {
  const { store, system, log } = parts;
  const options = readOptions(dedupOptions, parts.options);
  const claimOf = createClaims(parts, options);
  const storeParts = { store, system, storeTimeoutMs: options.storeTimeoutMs };

  /** One put where nothing is stored; each lost race costs a decision on what the winner wrote. */
  const take = async (documentId: string, claim: Claim) => {
    const keepMs = claim.ttlMs + claim.leaseMs;
    let current: Stored<DedupRecord> | undefined;
    for (;;) {
      const decision = decideClaim(current, claim);
      const sentAtMs = system.clock.monotonicMs();
      const holding = (record: DedupRecord, version: Version) =>
        ({ kind: 'holding', claimed: { key: documentId, record, version, sentAtMs, keepMs } }) as const;
      if (decision.kind === 'claimed') return holding(decision.record, decision.version);
      if (decision.kind !== 'run') return decision;
      const put = await settledPut(storeParts, documentId, decision.write, current?.version ?? 'absent', keepMs);
      if (put.kind === 'applied') return holding(decision.write, put.version);
      current = put.current;
    }
  };

  const deliver = async (handle: Handler, message: Message, context: Context, { documentId, claim }: DedupClaim): Promise<Verdict> => {
    const taken = await take(documentId, claim);
    if (taken.kind === 'duplicate') return ack('duplicate');
    if (taken.kind === 'busy') return nack('inProgress', taken.retryAfterMs);
    if (taken.kind === 'conflict') return conflictVerdict(claim);
    if (taken.kind === 'exhausted') return deadLetter('attempts', `${claim.maxAttempts} runs failed`);

    const lease = holdLease(storeParts, log, taken.claimed);
    const signal = AbortSignal.any([context.signal, lease.signal]);
    let verdict: Verdict;
    let thrown = false;
    try {
      verdict = verdictOf(await handle(message, { ...context, signal, idempotencyKey: claim.key, fence: taken.claimed.record.rev }));
    } catch (error) {
      thrown = true;
      verdict = verdictOfError(error);
      log.warn({ key: claim.key, messageId: message.messageId, reason: textOf(error) }, 'handler failed');
    }
    if (verdict.kind === 'ack') {
      const ended = await lease.end((record) => ({ ...record, state: 'done', result: verdict.reason }), claim.ttlMs);
      if (ended === 'recordLost')
        log.error({ key: claim.key, messageId: message.messageId }, 'the store lost the claim while its handler ran');
      return ended === 'lost' ? nack('leaseLost') : verdict;
    }
    // What a handler hands back by a verdict of its own is no failed attempt.
    const attemptsBack = thrown ? 0 : 1;
    await lease
      .end((record) => ({ ...record, state: 'failed', attempts: record.attempts - attemptsBack }), claim.ttlMs)
      .catch((error: unknown) => log.warn({ key: claim.key, reason: textOf(error) }, 'key not freed; its lease will end'));
    return verdict;
  };

  /** A copy of a message that this process is already handling joins that run and makes no store call. */
  const running = new Map<string, Promise<Verdict>>();

  return (handle) =>
    neverThrowing(log, async (message, context) => {
      const claim = claimOf(message);
      const identity = JSON.stringify([claim.documentId, claim.claim.fingerprint, claim.claim.seqRef]);
      const first = running.get(identity);
      if (first !== undefined) {
        const verdict = await first;
        return verdict.kind === 'ack' ? ack('duplicate') : verdict;
      }
      const run = deliver(handle, message, context, claim).finally(() => running.delete(identity));
      running.set(identity, run);
      return run;
    });
}
