import { errorCodeOf, textOf } from '../errors.ts';
import type { Lease, LeaseEnd } from '../lease.ts';
import { attribute, type Message } from '../message.ts';
import type { Telemetry } from '../metrics.ts';
import type { Clock, Context, DeadLetters, Handler } from '../ports.ts';
import { ack, type DeadLetter, nack, type Verdict, verdictOf, verdictOfError } from '../verdict.ts';
import { advanced, type Cursor, failed, released, stopped } from './decide.ts';
import { type FifoStore, type Place, parkedFor } from './store.ts';

export type HeadParts = {
  readonly store: FifoStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly deadLetters: DeadLetters;
  /** 0: no limit. */
  readonly maxAttempts: number;
  /** What becomes of a number whose attempts are used up: the stream stops, or goes on without it. */
  readonly onPoison: 'block' | 'deadLetter';
  readonly sweepAfterMs: number;
};

/** A number whose turn it is, under its lease. */
export type Turn = { readonly place: Place; readonly message: Message; readonly lease: Lease<Cursor>; readonly cursor: Cursor };

/**
 * Runs the number at the head and moves the cursor behind it, with the park, in one commit (protocol 4.3, F2, F5, F7). A handler's failure
 * is counted in the cursor, apart from every wait.
 */
export function createHead(parts: HeadParts): (handle: Handler, turn: Turn, context: Context) => Promise<Verdict> {
  const { store, deadLetters, maxAttempts } = parts;
  const { log, count } = parts.telemetry;

  const run = async (handle: Handler, { message, lease }: Turn, context: Context): Promise<Verdict> => {
    if (message.attributes[attribute.tombstone] !== undefined) return ack('tombstone');
    try {
      const signal = AbortSignal.any([context.signal, lease.signal()]);
      return verdictOf(await handle(message, { ...context, signal, fence: lease.fence }));
    } catch (error) {
      log.warn({ messageId: message.messageId, reason: textOf(error) }, 'handler failed');
      return verdictOfError(error);
    }
  };

  const passed = async ({ lease, place }: Turn, verdict: Verdict): Promise<Verdict> => {
    const written = await lease.end(advanced, 'forever', store.beside({ unpark: place }));
    if (written !== 'lost') return verdict;
    count('ptk.fifo.lease_lost');
    return nack('leaseLost');
  };

  const givenBack = async ({ lease, place }: Turn, verdict: Verdict, next: (cursor: Cursor) => Cursor): Promise<Verdict> => {
    await lease.end(next, 'forever').catch((error: unknown) => {
      log.warn({ stream: place.stream, reason: textOf(error) }, 'stream not freed; its lease will end');
    });
    return verdict;
  };

  const buried = async (turn: Turn, verdict: DeadLetter): Promise<Verdict> => {
    const { message, place } = turn;
    try {
      await deadLetters.publish(message, verdict);
    } catch (error) {
      log.error({ messageId: message.messageId, stream: place.stream, reason: textOf(error) }, 'dead letter not published');
      return givenBack(turn, nack('failed'), released);
    }
    return passed(turn, ack('skipped'));
  };

  /** Its attempts are used up. */
  const poisoned = async (turn: Turn): Promise<Verdict> => {
    const { place, message, lease } = turn;
    const { stream, epoch, seq } = place;
    if (parts.onPoison === 'deadLetter')
      return buried(turn, { kind: 'deadLetter', reason: 'attempts', detail: `${maxAttempts} runs of number ${seq} failed` });
    const parked = parkedFor(place, message, 'blocked', parts.clock.nowMs(), parts.sweepAfterMs);
    const stop = (cursor: Cursor) => stopped(cursor, parked.parkedAtMs);
    let verdict = ack('parked');
    let written: LeaseEnd;
    try {
      written = await lease.end(stop, 'forever', store.beside({ park: parked }));
    } catch (error) {
      if (errorCodeOf(error) !== 'MESSAGE_TOO_LARGE') throw error;
      // It stays where it is, and comes again.
      count('ptk.fifo.not_parked');
      verdict = nack('blocked');
      written = await lease.end(stop, 'forever');
    }
    if (written === 'lost') return nack('leaseLost');
    count('ptk.fifo.blocked');
    log.error({ stream, epoch, seq, messageId: message.messageId, attempts: maxAttempts }, 'stream blocked');
    return verdict;
  };

  const isUsedUp = (attempts: number): boolean => maxAttempts > 0 && attempts >= maxAttempts;

  return async (handle, turn, context) => {
    // Each of its runs took its process down: it is not begun again.
    if (isUsedUp(turn.cursor.attempts)) return poisoned(turn);
    const verdict = await run(handle, turn, context);
    if (verdict.kind === 'ack') return passed(turn, verdict);
    if (verdict.kind === 'deadLetter') return buried(turn, verdict);
    if (verdict.reason !== 'failed') return givenBack(turn, verdict, released);
    return isUsedUp(turn.cursor.attempts + 1) ? poisoned(turn) : givenBack(turn, verdict, failed);
  };
}
