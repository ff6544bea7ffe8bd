import { errorCodeOf } from '../errors.ts';
import { type Message, type SequenceRef, sequenceRefOf } from '../message.ts';
import { telemetry } from '../metrics.ts';
import { type Options, readOptions } from '../options.ts';
import type { Context, DeadLetters, Handler, Log, Meter, System, VerdictHandler } from '../ports.ts';
import { ack, deadLetter, nack, neverThrowing, type Verdict, verdictOf } from '../verdict.ts';
import { within } from '../waiting.ts';
import { arrivalOf, earlyRetryMs, isReused, type StartAt } from './decide.ts';
import { createFollow, type Follow } from './follow.ts';
import type { Gaps } from './gaps.ts';
import { createHands, type Seat } from './hands.ts';
import { fifoOptions } from './options.ts';
import type { PerformParts } from './perform.ts';
import { createRun, type Run, type RunParts } from './run.ts';
import { cursorKeyOf, type FifoStore, type ParkReason, type Place, parkedFor } from './store.ts';
import { createSweep, type Sweep } from './sweep.ts';
import { createTake, type Taken } from './take.ts';

export type FifoParts = {
  readonly consumer: string;
  readonly store: FifoStore;
  readonly system: System;
  readonly log: Log;
  readonly meter?: Meter;
  /** Where a message of a stream goes that can never be handled; its number then counts as done. */
  readonly deadLetters: DeadLetters;
  /** An early message that no longer waits in this process, or came while its stream was held: stored and acked until its turn (default), or given back. */
  readonly early?: 'park' | 'nack';
  /** A number whose attempts are used up: its stream stops until an operator lets it go on (default), or goes on without it, or to a lane. */
  readonly onPoison?: PerformParts['onPoison'];
  /** Numbers of a newer epoch: the stream stops until an operator has looked (default), or follows at once. */
  readonly onNewEpoch?: 'block' | 'follow';
  /** The number that this consumer starts with in a stream that it has not seen (default 1), or the first one that it sees. */
  readonly startAt?: StartAt;
  /** What a sweep does about a number that does not come. */
  readonly gaps?: Gaps;
  readonly options?: Partial<Options<typeof fifoOptions>>;
};

export type FifoHandler = VerdictHandler & {
  /** Runs what was parked and then forgotten: to be called every minute or so, by a timer or a schedule (protocol 4.10). */
  sweep(stream?: string): Promise<Sweep>;
};

export type FifoRunParts = RunParts & Pick<FifoParts, 'system'> & { readonly storeTimeoutMs: number };

/**
 * Runs a handler in order of number, one at a time per stream over all processes: the cursor moves by compare-and-set, and
 * only after the handler is done (protocol 4). Whoever moved it looks for the next number in hand and in the park before it answers. A message
 * without a stream goes straight through.
 * @throws INVALID_SETTINGS here, and never while messages are handled
 */
export function createFifo(parts: FifoParts): (handle: Handler) => FifoHandler {
  const withRun = fifoWith(parts);
  return (handle) => withRun((shared) => createRun(shared, handle), handle);
}

/** @returns takes a way to run a stream that is held, and what becomes of a message without a stream */
export function fifoWith(parts: FifoParts): (runOf: (parts: FifoRunParts) => Run, alone: Handler) => FifoHandler {
  const { consumer, store, system, log, early = 'park' } = parts;
  const options = readOptions(fifoOptions, parts.options);
  const { holdMs, holdMessages, storeTimeoutMs, sweepAfterMs } = options;
  const { clock } = system;
  const watched = telemetry(consumer, log, parts.meter);
  const hands = createHands(clock);
  const bounded = <T>(what: string, call: Promise<T>) => within(clock, storeTimeoutMs, 'STORE_UNAVAILABLE', what, call);
  const shared = { ...options, ...parts, clock, telemetry: watched, hands, bounded, onPoison: parts.onPoison ?? 'block' };
  const take = createTake({ ...shared, startAt: parts.startAt ?? 1, follows: parts.onNewEpoch === 'follow' });
  cursorKeyOf(consumer, 'any');

  /** A delivery may wait here while others still find a place. */
  const mayWait = ({ places = Number.POSITIVE_INFINITY, signal }: Context): boolean =>
    hands.waiting() < Math.min(holdMessages, places - 1) && !signal.aborted;

  /** The stream, or why not: what is early or busy waits in this process first, where a run takes it from, and looks again. */
  const takeInTurn = async (seat: Seat): Promise<Taken | 'answered'> => {
    const untilMs = clock.monotonicMs() + holdMs;
    const leftMs = () => (mayWait(seat.context) ? untilMs - clock.monotonicMs() : 0);
    for (let isCalled = false; ; ) {
      // A run of this process may be about to come to it.
      const looks = isCalled || leftMs() <= 0 || !hands.isRunning(seat.place.stream);
      const taken = looks ? await take(seat.place, seat.message, seat.place.seq) : undefined;
      const waitMs = taken ? waitFor(taken, leftMs(), seat.context) : leftMs();
      if (taken && waitMs <= 0) return taken;
      const called = await seat.wait(waitMs);
      if (called === 'answered') return called;
      isCalled = called === 'again';
    }
  };

  /**
   * How long a delivery waits here for its turn; a copy of the very number that is run waits as long as it may take: given back it would come again at
   * once, and use up the delivery attempts of what may be the only copy, if the one that runs it dies. A push cannot wait, its request would end.
   */
  const waitFor = (taken: Taken, leftMs: number, context: Context): number => {
    if (taken.kind === 'own' && context.places !== undefined && mayWait(context)) return Math.max(leftMs, taken.retryAfterMs);
    return isWaiting(taken) ? leftMs : 0;
  };

  /** Parked first and looked at again then (protocol 4.3, F3 and F4): who gives the stream up looks in the other order. */
  const parkedOrTaken = async ({ place, message }: Seat, reason: ParkReason): Promise<Taken | 'parked'> => {
    const there = await bounded('park', store.park(parkedFor(place, message, reason, clock.nowMs(), sweepAfterMs)));
    const ref = { epoch: place.epoch, sequence: place.seq };
    if (there && isReused(arrivalOf(there, ref), arrivalOf(message, ref)))
      return { kind: 'lost', reason: 'sequenceReused', detail: `another message waits under number ${place.seq}` };
    const taken = await take(place, message, place.seq);
    if (!reasonToPark(taken)) return taken;
    watched.count('ptk.fifo.parked', { reason });
    return 'parked';
  };

  const inTurn = async (follow: Follow, seat: Seat): Promise<Verdict> => {
    let taken: Taken | 'answered' | 'parked' = await takeInTurn(seat);
    const reason = taken !== 'answered' && reasonToPark(taken);
    if (reason && early === 'park') {
      try {
        taken = await parkedOrTaken(seat, reason);
      } catch (error) {
        if (errorCodeOf(error) !== 'MESSAGE_TOO_LARGE') throw error;
        watched.count('ptk.fifo.not_parked');
      }
    }
    if (taken === 'parked') return ack('parked');
    if (taken === 'answered') return await seat.answer;
    switch (taken.kind) {
      case 'turn':
        void follow(seat, taken.turn);
        return await seat.answer;
      case 'old':
      case 'lost':
        seat.verdict = taken.kind === 'old' ? ack('old') : deadLetter(taken.reason, taken.detail);
        // A copy of it may have been parked after it was done, by a process that died before it looked again; under a number that is used twice another message may be there.
        if (taken.kind === 'old') await bounded('unpark', store.unpark(seat.place));
        void follow(seat);
        return await seat.answer;
      case 'early':
        return nack('early', earlyRetryMs(taken.delta));
      case 'busy':
      case 'own':
        return nack('inProgress', taken.retryAfterMs);
      case 'blocked':
      case 'newEpoch':
        return nack('blocked', 1_000);
    }
  };

  return (runOf, alone) => {
    const follow = createFollow({ ...shared, take, run: runOf({ ...shared, system }) });
    const deliver = async (message: Message, context: Context): Promise<Verdict> => {
      const ref = sequenceRefOf(message);
      if (!ref) return verdictOf(await alone(message, context));
      const seat = hands.sit(placeOf(consumer, ref), message, context);
      try {
        return await inTurn(follow, seat);
      } finally {
        seat.leave();
      }
    };
    const sweep = createSweep({ ...shared, system, take, follow, gaps: parts.gaps });
    return Object.assign(neverThrowing(log, deliver), { sweep });
  };
}

const isWaiting = ({ kind }: Taken): boolean => kind === 'early' || kind === 'busy' || kind === 'own';

const placeOf = (consumer: string, { stream, epoch, sequence }: SequenceRef): Place => ({ consumer, stream, epoch, seq: sequence });

/** Nobody acks it before it is stored, and nobody looks for it before its turn. */
function reasonToPark({ kind }: Taken): ParkReason | undefined {
  switch (kind) {
    case 'early':
    case 'busy':
    case 'blocked':
      return kind;
    case 'newEpoch':
      return 'epoch';
    default:
      return undefined;
  }
}
