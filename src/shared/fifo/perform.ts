import { textOf } from '../errors.ts';
import { attribute, dedupKeyOf, forwarded, type Message } from '../message.ts';
import type { Telemetry } from '../metrics.ts';
import type { Clock, Context, DeadLetters, Handler, Publisher } from '../ports.ts';
import { ack, type DeadLetter, nack, type Verdict, verdictOf, verdictOfError } from '../verdict.ts';
import { type Blocked, type Cursor, failed, released, stopped } from './cursor.ts';
import type { Place } from './store.ts';

/** Another topic, to which a stream's numbers go, in their order, once one of them has used up its attempts. */
export type Lane = { readonly publisher: Publisher; readonly topic: string };

export type PerformParts = {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly deadLetters: DeadLetters;
  /** 0: no limit. */
  readonly maxAttempts: number;
  /** What becomes of a number whose attempts are used up: its stream stops, or goes on without it, or goes on to a lane. */
  readonly onPoison: 'block' | 'deadLetter' | { readonly divert: Lane };
};

type Asked = {
  readonly place: Place;
  readonly message: Message;
  readonly context: Context;
  readonly attempts: number;
  readonly blocked: Blocked | null;
};

/** The number is not done. `parks`: its message goes to the park, in the commit that stops the stream. */
export type Stops = {
  readonly kind: 'stops';
  readonly verdict: Verdict;
  readonly change: (cursor: Cursor) => Cursor;
  readonly parks: boolean;
};

export type Passes = { readonly kind: 'passes'; readonly verdict: Verdict; readonly blocked: Blocked | null };

export type Performed = Stops | Passes;

/** Runs the handler for the number at the head, or whatever takes its place. A failure is counted apart from every wait. */
export function createPerform(parts: PerformParts): (handle: Handler, asked: Asked) => Promise<Performed> {
  const { clock, deadLetters, maxAttempts, onPoison } = parts;
  const { log, count } = parts.telemetry;

  const stops = (verdict: Verdict, change: (cursor: Cursor) => Cursor, parks = false): Stops => ({ kind: 'stops', verdict, change, parks });

  const run = async (handle: Handler, { message, context }: Asked): Promise<Verdict> => {
    if (message.attributes[attribute.tombstone] !== undefined) return ack('tombstone');
    try {
      return verdictOf(await handle(message, context));
    } catch (error) {
      log.warn({ messageId: message.messageId, reason: textOf(error) }, 'handler failed');
      return verdictOfError(error);
    }
  };

  /** Its message is elsewhere, and its number counts. */
  const handedOver = async ({ message, place, blocked }: Asked, what: string, publish: () => Promise<unknown>): Promise<Performed> => {
    try {
      await publish();
      return { kind: 'passes', verdict: ack('skipped'), blocked };
    } catch (error) {
      log.error({ messageId: message.messageId, stream: place.stream, reason: textOf(error) }, `${what} not published`);
      return stops(nack('failed'), released);
    }
  };
  const buried = (asked: Asked, letter: DeadLetter) => handedOver(asked, 'dead letter', () => deadLetters.publish(asked.message, letter));
  const toLane = (asked: Asked, { publisher, topic }: Lane) =>
    handedOver(asked, 'lane', () => publisher.publish(topic, [forwarded(asked.message, dedupKeyOf(asked.message))]));

  /** Its attempts are used up. */
  const poisoned = (asked: Asked): Promise<Performed> | Performed => {
    const { stream, epoch, seq } = asked.place;
    if (onPoison === 'deadLetter') {
      return buried(asked, { kind: 'deadLetter', reason: 'attempts', detail: `${maxAttempts} runs of number ${seq} failed` });
    }
    const sinceMs = clock.nowMs();
    count('ptk.fifo.blocked', { reason: 'attempts' });
    const fields = { stream, epoch, seq, messageId: asked.message.messageId, attempts: maxAttempts };
    if (onPoison === 'block') {
      log.error(fields, 'stream blocked');
      return stops(ack('parked'), (cursor) => stopped(cursor, sinceMs), true);
    }
    const { divert: lane } = onPoison;
    log.error({ ...fields, lane: lane.topic }, 'stream diverted');
    return toLane({ ...asked, blocked: { seq, reason: 'attempts', sinceMs, lane: lane.topic } }, lane);
  };

  const isUsedUp = (attempts: number): boolean => maxAttempts > 0 && attempts >= maxAttempts;

  return async (handle, asked) => {
    const { attempts, blocked } = asked;
    if (blocked?.lane !== undefined) {
      if (typeof onPoison === 'object') return toLane(asked, onPoison.divert);
      log.error({ stream: asked.place.stream, lane: blocked.lane }, 'stream goes to a lane that this process does not have');
      return stops(nack('blocked'), released);
    }
    // Each of its runs took its process down: it is not begun again.
    if (isUsedUp(attempts)) return poisoned(asked);
    const verdict = await run(handle, asked);
    if (verdict.kind === 'ack') return { kind: 'passes', verdict, blocked };
    if (verdict.kind === 'deadLetter') return buried(asked, verdict);
    if (verdict.reason !== 'failed') return stops(verdict, released);
    return isUsedUp(attempts + 1) ? poisoned(asked) : stops(verdict, failed);
  };
}
