import { lazyContext } from '../context.ts';
import { textOf } from '../errors.ts';
import { type Message, type OutgoingMessage, tombstoneOf, traceIdOf } from '../message.ts';
import type { Telemetry } from '../metrics.ts';
import type { Context, Handler } from '../ports.ts';
import { ack, deadLetter, nack, type Verdict, verdictOf, verdictOfError } from '../verdict.ts';
import type { DedupClaim } from './claim.ts';
import { type Claim, type DedupRecord, duplicateKind } from './decide.ts';
import { decodeResult, encodeResult } from './results.ts';
import type { Ended, Outcome, Run } from './run.ts';

/** What the first run returned; not kept where it was over `maxResultBytes` or no JSON. */
export type FirstResult = { readonly isKept: boolean; readonly value: unknown; readonly firstSeenAtMs: number };
/** Called for each duplicate, before its ack. A throw gives the duplicate back. */
export type Replay = (message: Message, first: FirstResult) => Promise<void>;

export type OutcomeParts = {
  readonly consumer: string;
  readonly telemetry: Telemetry;
  readonly maxResultBytes: number;
  readonly replay?: Replay | undefined;
  /** Where a number goes whose message ends here, when a fifo layer follows over a topic (protocol 6.2). */
  readonly tombstones?: ((message: OutgoingMessage) => Promise<void>) | undefined;
};

/** One delivery with what it claims. */
export type Delivery = DedupClaim & { readonly message: Message; readonly context: Context };

/** Ids for the log; never the payload. */
export const about = ({ message, claim: { key } }: Delivery) => ({ key, messageId: message.messageId, traceId: traceIdOf(message) });

/**
 * The handler with its context, judged: a throw is a failed attempt, and what it hands back by a verdict of its own is none.
 * @param run none where the delivery holds no key
 */
export async function handled(parts: OutcomeParts, handle: Handler, delivery: Delivery, run?: Run): Promise<Ended<Verdict>> {
  const { log, count } = parts.telemetry;
  const { context, claim } = delivery;
  const signal = () => (run ? AbortSignal.any([context.signal, run.signal()]) : context.signal);
  const held = lazyContext(signal, { idempotencyKey: claim.key, fence: run ? run.fence : context.fence });
  try {
    const returned = await handle(delivery.message, held);
    const verdict = verdictOf(returned);
    if (verdict.kind !== 'ack') return { value: verdict, state: 'released', result: null };
    count('ptk.dedup.handled', { outcome: 'processed' });
    return {
      value: verdict,
      state: 'done',
      result: parts.replay && returned !== verdict ? keptResult(parts, returned, delivery.claim) : null,
    };
  } catch (error) {
    count('ptk.dedup.handled', { outcome: 'failed' });
    log.warn({ ...about(delivery), reason: textOf(error) }, 'handler failed');
    return { value: verdictOfError(error), state: 'failed', result: null };
  }
}

/** A result as its record keeps it; null, counted and said, where it cannot. */
export function keptResult(
  { maxResultBytes, telemetry: { log, count } }: Pick<OutcomeParts, 'maxResultBytes' | 'telemetry'>,
  value: unknown,
  { key }: Pick<Claim, 'key'>,
): string | null {
  const encoded = encodeResult(value, maxResultBytes);
  if (encoded.text !== null) return encoded.text;
  count('ptk.dedup.results_dropped', { reason: encoded.dropped });
  log.warn({ key, reason: encoded.dropped, limitBytes: maxResultBytes }, 'result not kept');
  return null;
}

/** What becomes of the delivery: at once, where there is nothing to wait for. */
export function verdictOfOutcome(parts: OutcomeParts, outcome: Outcome<Verdict>, delivery: Delivery): Verdict | Promise<Verdict> {
  const { claim } = delivery;
  switch (outcome.kind) {
    case 'ended':
      return passedOn(parts, outcome.ended.value, delivery);
    case 'threw':
      throw outcome.error;
    case 'leaseLost':
      return nack('leaseLost');
    case 'busy':
      parts.telemetry.count('ptk.dedup.in_progress');
      return nack('inProgress', outcome.retryAfterMs);
    case 'duplicate':
      return duplicateOf(parts, outcome.record, delivery);
    case 'conflict':
      parts.telemetry.count('ptk.dedup.conflicts');
      return passedOn(parts, deadLetter('conflict', evidence(parts, outcome.record, delivery)), delivery);
    case 'escalated':
      return passedOn(parts, deadLetter('abandoned', evidence(parts, outcome.record, delivery)), delivery);
    case 'exhausted':
      return passedOn(parts, deadLetter('attempts', `${claim.maxAttempts} runs failed`), delivery);
  }
}

/** What a duplicate needs to know of the run before it. */
export type FirstRun = Pick<DedupRecord, 'messageId' | 'originId' | 'seqRef' | 'result' | 'firstSeenAtMs'>;

/** Counted; the first run's result is replayed, and a number of its own goes on, before the duplicate is acked. */
export function duplicateOf(parts: OutcomeParts, first: FirstRun, delivery: Delivery): Verdict | Promise<Verdict> {
  const { replay, telemetry } = parts;
  const kind = duplicateKind(first, delivery.claim);
  telemetry.count('ptk.dedup.duplicates', { kind });
  const { message, claim } = delivery;
  telemetry.log.debug({ key: claim.key, messageId: message.messageId, traceId: traceIdOf(message), kind }, 'duplicate');
  return replay || claim.seqRef ? afterPassingOn(parts, first, delivery) : ack('duplicate');
}

async function afterPassingOn(parts: OutcomeParts, first: FirstRun, delivery: Delivery): Promise<Verdict> {
  const { message, claim } = delivery;
  await parts.replay?.(message, { value: undefined, ...decodeResult(first.result), firstSeenAtMs: first.firstSeenAtMs });
  if (claim.seqRef && JSON.stringify(claim.seqRef) !== JSON.stringify(first.seqRef)) await passTombstone(parts, delivery, 'duplicate');
  return ack('duplicate');
}

async function passedOn(parts: OutcomeParts, verdict: Verdict, delivery: Delivery): Promise<Verdict> {
  if (verdict.kind !== 'deadLetter') return verdict;
  if (delivery.claim.seqRef) await passTombstone(parts, delivery, verdict.reason);
  return deadLetter(verdict.reason, verdict.detail, delivery.claim.key);
}

const passTombstone = async ({ tombstones }: OutcomeParts, { message, claim }: Delivery, reason: string): Promise<void> =>
  tombstones?.(tombstoneOf(message, claim.key, reason));

/** Why a message under a known key is a dead letter, for `pubsub-toolkit redrive`; no payload. */
export type Evidence = {
  readonly consumer: string;
  readonly keyHash: string;
  readonly fingerprint: string;
  readonly stored: string;
  readonly firstSeenAt: string;
};

function evidence({ consumer }: OutcomeParts, record: DedupRecord, { keyHash, claim: { fingerprint } }: Delivery): string {
  const firstSeenAt = new Date(record.firstSeenAtMs).toISOString();
  const found: Evidence = { consumer, keyHash, fingerprint, stored: record.fingerprint, firstSeenAt };
  return JSON.stringify(found);
}
