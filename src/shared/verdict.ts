import { type ErrorCode, errorCodeOf, textOf } from './errors.ts';
import { attribute } from './message.ts';
import type { Log, VerdictHandler } from './ports.ts';

/** What happens to a delivery, and why. */
export type Verdict =
  | { readonly kind: 'ack'; readonly reason: AckReason }
  | { readonly kind: 'nack'; readonly reason: NackReason; readonly retryAfterMs?: number }
  | DeadLetter;

/** `key`: the dedup key, where one was made. */
export type DeadLetter = { readonly kind: 'deadLetter'; readonly reason: DeadLetterReason; readonly detail: string; readonly key?: string };

export type AckReason = 'processed' | 'duplicate' | 'old' | 'parked' | 'tombstone' | 'scheduled' | 'superseded' | 'skipped';
export type NackReason = 'inProgress' | 'early' | 'blocked' | 'failed' | 'storeUnavailable' | 'leaseLost';
export type DeadLetterReason =
  | 'malformed'
  | 'conflict'
  | 'attempts'
  | 'abandoned'
  | 'oldEpoch'
  | 'skipped'
  | 'sequenceReused'
  | 'beforeStart'
  | 'tooOld'
  | 'tooLarge'
  | 'loop'
  | 'ledgerMissing'
  | 'payloadMissing'
  | 'refused';

/** A symbol of the registry, so that a verdict made by a second copy of this package is known too. */
const brand = Symbol.for('pubsub-toolkit.verdict');

const branded = (verdict: Verdict): Verdict => Object.freeze(Object.defineProperty(verdict, brand, { value: true }));

/** One object a reason: most messages end in one of a few verdicts. */
function each<Reason extends string>(make: (reason: Reason) => Verdict): (reason: Reason) => Verdict {
  const made = new Map<Reason, Verdict>();
  return (reason) => {
    const verdict = made.get(reason) ?? make(reason);
    made.set(reason, verdict);
    return verdict;
  };
}

export const ack = each<AckReason>((reason) => branded({ kind: 'ack', reason }));
const nackAtOnce = each<NackReason>((reason) => branded({ kind: 'nack', reason }));
export const nack = (reason: NackReason, retryAfterMs?: number): Verdict =>
  retryAfterMs === undefined ? nackAtOnce(reason) : branded({ kind: 'nack', reason, retryAfterMs });
export const deadLetter = (reason: DeadLetterReason, detail: string, key?: string): Verdict =>
  branded({ kind: 'deadLetter', reason, detail, ...(key !== undefined && { key }) });

/** A handler may return a verdict of its own; whatever else it returns means that it is done. */
export function verdictOf(returned: unknown): Verdict {
  return typeof returned === 'object' && returned !== null && brand in returned ? (returned as unknown as Verdict) : ack('processed');
}

const deadLetterReasons: Readonly<Partial<Record<ErrorCode, DeadLetterReason>>> = {
  MALFORMED_MESSAGE: 'malformed',
  KEY_MISSING: 'malformed',
  MESSAGE_TOO_LARGE: 'tooLarge',
  LEDGER_MISSING: 'ledgerMissing',
  PAYLOAD_MISSING: 'payloadMissing',
  REFUSED: 'refused',
  KEY_CONFLICT: 'conflict',
  OUTCOME_UNKNOWN: 'abandoned',
};
const nackReasons: Readonly<Partial<Record<ErrorCode, NackReason>>> = {
  STORE_UNAVAILABLE: 'storeUnavailable',
  RECORD_UNREADABLE: 'storeUnavailable',
  IN_PROGRESS: 'inProgress',
  LEASE_LOST: 'leaseLost',
};

/** What an error that reached the toolkit means for the delivery; by its code, or `failed` where it came from a handler. */
export function verdictOfError(error: unknown): Verdict {
  const code = errorCodeOf(error);
  const reason = code && deadLetterReasons[code];
  if (reason) return deadLetter(reason, textOf(error));
  return nack((code && nackReasons[code]) ?? 'failed');
}

/** A layer's delivery that always ends in a verdict: what it throws is logged and judged by its code. */
export const neverThrowing =
  (log: Log, deliver: VerdictHandler): VerdictHandler =>
  (message, context) => {
    const judged = (error: unknown) => {
      log.warn(
        { messageId: message.messageId, stream: message.attributes[attribute.stream], reason: textOf(error) },
        'delivery not handled',
      );
      return verdictOfError(error);
    };
    try {
      return deliver(message, context).catch(judged);
    } catch (error) {
      return Promise.resolve(judged(error));
    }
  };
