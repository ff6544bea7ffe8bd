import { errorCodeOf, textOf } from '../errors.ts';
import type { Message } from '../message.ts';
import { meteredStore, telemetry } from '../metrics.ts';
import { type Options, readOptions } from '../options.ts';
import type { Context, Handler, Log, Meter, RecordStore, VerdictHandler } from '../ports.ts';
import { neverThrowing, type Verdict, verdictOf } from '../verdict.ts';
import { type Claimant, claimedBy, createClaims, type Reading } from './claim.ts';
import type { DedupRecord } from './decide.ts';
import { createJoining } from './joining.ts';
import { dedupOptions } from './options.ts';
import { about, type Delivery, handled, type OutcomeParts, type Replay, verdictOfOutcome } from './outcomes.ts';
import { createRunner, type Ended, type Outcome, type Reconcile, type Run } from './run.ts';

export type DedupParts = Claimant &
  Reading & {
    readonly store: RecordStore<DedupRecord>;
    readonly log: Log;
    readonly meter?: Meter;
    /** A message without the key that `keyOf` looks for: a dead letter (default), or run without dedup, with a warning. */
    readonly onMissingKey?: 'deadLetter' | 'run';
    /** While the store is down: no message is run (default), or each is run without dedup, counted. */
    readonly onOutage?: 'closed' | 'open';
    /** Counts what would not be run, and runs everything. */
    readonly shadow?: boolean;
    /** With `effects: 'external'`: says what became of a run that died; without it such a message is a dead letter. */
    readonly reconcile?: Reconcile;
    /** Results are kept only with it. */
    readonly replay?: Replay;
    readonly tombstones?: NonNullable<OutcomeParts['tombstones']>;
    readonly options?: Partial<Options<typeof dedupOptions>>;
  };

type Begun = Delivery & { handling?: Promise<Ended<Verdict>> | undefined };

/**
 * Runs a handler once per message: claim, run, end (protocol 1). A duplicate of a finished message is acked, one of a running
 * message is not; a failed handler frees the key.
 * @throws INVALID_SETTINGS here, and never while messages are handled
 */
export function createDedup(parts: DedupParts): (handle: Handler) => VerdictHandler {
  const { system, log, consumer, replay, tombstones, shadow = false } = parts;
  const { maxResultBytes, storeTimeoutMs, ...options } = readOptions(dedupOptions, parts.options);
  const watched = telemetry(consumer, log, parts.meter);
  const outcomeParts: OutcomeParts = { consumer, telemetry: watched, maxResultBytes, replay, tombstones };
  const store = meteredStore(parts.store, parts.meter, system);
  // Shadow mode decides nothing, so nobody is asked to reconcile either.
  const claimOf = createClaims({ ...parts, ...(shadow && { effects: 'internal' }) }, options);

  const deliverWithoutKey = async (handle: Handler, message: Message, context: Context, error: unknown): Promise<Verdict> => {
    if (errorCodeOf(error) !== 'KEY_MISSING' || parts.onMissingKey !== 'run') throw error;
    watched.count('ptk.dedup.unguarded', { reason: 'key missing' });
    log.warn({ messageId: message.messageId, reason: textOf(error) }, 'run without dedup');
    return verdictOf(await handle(message, context));
  };

  return (handle) => {
    /** At most once for a delivery, under its key or without. */
    const handledOnce = (delivery: Begun, run?: Run) => {
      delivery.handling ??= handled(outcomeParts, handle, delivery, run);
      return delivery.handling;
    };
    const runOnce = createRunner({ store, system, telemetry: watched, storeTimeoutMs, reconcile: parts.reconcile }, handledOnce);

    const deliver = async (delivery: Begun): Promise<Verdict> => {
      let outcome: Outcome<Verdict>;
      try {
        outcome = await runOnce(delivery);
      } catch (error) {
        if (!shadow && (parts.onOutage !== 'open' || errorCodeOf(error) !== 'STORE_UNAVAILABLE')) throw error;
        watched.count('ptk.dedup.unguarded', { reason: 'outage' });
        log.warn({ ...about(delivery), reason: textOf(error) }, 'run without dedup');
        return (await handledOnce(delivery)).value;
      }
      if (outcome.kind === 'ended' && outcome.ended.value.kind === 'ack') return outcome.ended.value;
      if (!shadow) return verdictOfOutcome(outcomeParts, outcome, delivery);
      if (outcome.kind !== 'ended') {
        watched.count('ptk.dedup.shadowed', { reason: outcome.kind });
        log.info({ ...about(delivery), reason: outcome.kind }, 'would not have run');
      }
      return (await handledOnce(delivery)).value;
    };

    const joining = createJoining(outcomeParts, deliver);
    return neverThrowing(log, (message, context) => {
      let delivery: Begun;
      try {
        const { documentId, keyHash, claim } = claimOf(claimedBy(message, parts), context.round);
        delivery = { documentId, keyHash, claim, message, context, handling: undefined };
      } catch (error) {
        return deliverWithoutKey(handle, message, context, error);
      }
      return shadow ? deliver(delivery) : joining(delivery);
    });
  };
}
