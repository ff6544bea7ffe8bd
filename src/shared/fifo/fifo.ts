import { errorCodeOf } from '../errors.ts';
import { holdLease } from '../lease.ts';
import { type Message, type SequenceRef, sequenceRefOf } from '../message.ts';
import { telemetry } from '../metrics.ts';
import { type Options, readOptions } from '../options.ts';
import type { Context, DeadLetters, Handler, Log, Meter, Stored, System, VerdictHandler } from '../ports.ts';
import { settledGet, settledPut } from '../settled.ts';
import { ack, deadLetter, nack, neverThrowing, type Verdict, verdictOf } from '../verdict.ts';
import { within } from '../waiting.ts';
import { type Cursor, decideSequence, type FifoDecision } from './decide.ts';
import { createHead, type HeadParts, type Turn } from './head.ts';
import { fifoOptions } from './options.ts';
import { cursorKeyOf, type FifoStore, type Place, parkedFor } from './store.ts';
import { createSweep, type Sweep } from './sweep.ts';
import { createWaitingRoom } from './waiting-room.ts';

export type FifoParts = {
  readonly consumer: string;
  readonly store: FifoStore;
  readonly system: System;
  readonly log: Log;
  readonly meter?: Meter;
  /** Where a message of a stream goes that can never be handled; its number then counts as done. */
  readonly deadLetters: DeadLetters;
  /** An early message, or one that comes while its stream is held: stored and acked until its turn (default), or given back. */
  readonly early?: 'park' | 'nack';
  /** A number whose attempts are used up: its stream stops until an operator lets it go on (default), or goes on without it. */
  readonly onPoison?: HeadParts['onPoison'];
  readonly options?: Partial<Options<typeof fifoOptions>>;
};

export type FifoHandler = VerdictHandler & {
  /** Runs what was parked and then forgotten: to be called every minute or so, by a timer or a schedule (protocol 4.10). */
  sweep(): Promise<Sweep>;
};

/**
 * Runs a handler in order of number, one at a time per stream over all processes: the cursor moves by compare-and-set, and
 * only after the handler is done (protocol 4). Whoever moved it looks for the next number in the park before it answers. A message
 * without a stream goes straight through.
 * @throws INVALID_SETTINGS here, and never while messages are handled
 */
export function createFifo(parts: FifoParts): (handle: Handler) => FifoHandler {
  const { consumer, store, system, log, deadLetters, early = 'park', onPoison = 'block' } = parts;
  const { leaseMs, holdMs, storeTimeoutMs, maxAttempts, gapReportMs, sweepAfterMs } = readOptions(fifoOptions, parts.options);
  const { clock } = system;
  const storeParts = { store, system, storeTimeoutMs };
  const watched = telemetry(consumer, log, parts.meter);
  const head = createHead({ store, clock, telemetry: watched, deadLetters, maxAttempts, onPoison, sweepAfterMs });
  const waitingRoom = createWaitingRoom(clock);
  const bounded = <T>(what: string, call: Promise<T>) => within(clock, storeTimeoutMs, 'STORE_UNAVAILABLE', what, call);
  cursorKeyOf(consumer, 'any');

  /** One try to take the stream for a number, on behalf of a delivery; a lost race is decided on what the winner wrote. */
  const take = async (place: Place, message: Message, by: number, seen?: Stored<Cursor>): Promise<TakeDecision> => {
    const key = cursorKeyOf(consumer, place.stream);
    const taking = { runId: system.randomId(), leaseMs, by };
    let current = seen ?? (await settledGet(storeParts, key));
    for (;;) {
      const decision = decideSequence(current, { epoch: place.epoch, sequence: place.seq }, taking);
      if (decision.kind !== 'process') return decision;
      const cursor = decision.write;
      const put = await settledPut(storeParts, key, cursor, current?.version ?? 'absent', 'forever');
      if (put.kind === 'applied') {
        const lease = holdLease<Cursor>(storeParts, log, { ...put, key, record: cursor, keepMs: 'forever' });
        return { kind: 'turn', turn: { place, message, lease, cursor } };
      }
      current = put.current;
    }
  };

  const ran = async (handle: Handler, turn: Turn, context: Context): Promise<Verdict> => {
    const verdict = await head(handle, turn, context);
    const { stream, seq } = turn.place;
    waitingRoom.moved(stream, verdict.kind === 'ack' && verdict.reason !== 'parked' ? seq : seq - 1);
    return verdict;
  };

  /**
   * Work left behind (protocol 4.3, F6): the next number, if it is parked and nobody else answers for it. Until that is certain the delivery
   * stays unacked, so if this process dies, it comes again and looks again.
   * @returns the delivery's own verdict, or a nack where what follows it could not be brought to its end
   */
  const lookedAfter = async (handle: Handler, place: Place, verdict: Verdict, context: Context): Promise<Verdict> => {
    for (let seq = place.seq + 1; ; ) {
      const { cursor, parked } = await bounded('look', store.look(cursorKeyOf(consumer, place.stream), { ...place, seq }));
      if (!cursor || cursor.record.epoch !== place.epoch) return verdict;
      if (cursor.record.last + 1 !== seq) {
        seq = cursor.record.last + 1;
        continue;
      }
      const runId = system.randomId();
      const decision = decideSequence(cursor, { epoch: place.epoch, sequence: seq }, { runId, leaseMs, by: place.seq });
      if (decision.kind === 'own') return nack('inProgress', decision.retryAfterMs);
      if (!parked || decision.kind !== 'process') return verdict;
      const taken = await take({ ...place, seq }, parked, place.seq, cursor);
      if (taken.kind !== 'turn') continue;
      const ended = await ran(handle, taken.turn, context);
      if (ended.kind === 'nack') return ended;
    }
  };

  /** The stream, or why not: what is early or busy waits in this process first, up to `holdMs`, and looks again. */
  const takeInTurn = async (place: Place, message: Message): Promise<TakeDecision> => {
    const untilMs = clock.monotonicMs() + holdMs;
    for (;;) {
      const seat = waitingRoom.sit(place.stream, place.seq);
      const taken = await take(place, message, place.seq).catch((error: unknown) => {
        seat.leave();
        throw error;
      });
      const leftMs = untilMs - clock.monotonicMs();
      const waits = (taken.kind === 'early' || taken.kind === 'busy' || taken.kind === 'own') && leftMs > 0;
      if (!waits) seat.leave();
      if (!waits || !(await seat.turn(leftMs))) return taken;
    }
  };

  /** Parked first and looked at again then (protocol 4.3, F3 and F4): who gives the stream up looks in the other order. */
  const parkedOrTaken = async (place: Place, message: Message, reason: 'early' | 'busy' | 'blocked'): Promise<TakeDecision | 'parked'> => {
    await bounded('park', store.park(parkedFor(place, message, reason, clock.nowMs(), sweepAfterMs)));
    const taken = await take(place, message, place.seq);
    if (!isWaiting(taken)) return taken;
    watched.count('ptk.fifo.parked', { reason: taken.kind });
    return 'parked';
  };

  const deliver = async (handle: Handler, message: Message, context: Context): Promise<Verdict> => {
    const ref = sequenceRefOf(message);
    if (!ref) return verdictOf(await handle(message, context));
    const place: Place = { consumer, stream: ref.stream, epoch: ref.epoch, seq: ref.sequence };
    let taken: TakeDecision | 'parked' = await takeInTurn(place, message);
    if (isWaiting(taken) && early === 'park') {
      try {
        taken = await parkedOrTaken(place, message, taken.kind);
      } catch (error) {
        if (errorCodeOf(error) !== 'MESSAGE_TOO_LARGE') throw error;
        watched.count('ptk.fifo.not_parked');
      }
    }
    if (taken === 'parked') return ack('parked');
    if (taken.kind === 'old') {
      // A copy of it may have been parked after it was done, by a process that died before it looked again.
      await bounded('unpark', store.unpark(place));
      return await lookedAfter(handle, place, ack('old'), context);
    }
    if (taken.kind !== 'turn') return verdictWithoutRun(taken, ref);
    const verdict = await ran(handle, taken.turn, context);
    if (verdict.kind !== 'ack' || verdict.reason === 'parked') return verdict;
    return await lookedAfter(handle, place, verdict, context);
  };

  return (handle) => {
    const worker = neverThrowing(log, (message, context) => deliver(handle, message, context));
    const run = (turn: Turn) => ran(handle, turn, { signal: new AbortController().signal });
    const sweep = createSweep({ consumer, store, system, telemetry: watched, take, run, bounded, gapReportMs, sweepAfterMs });
    return Object.assign(worker, { sweep });
  };
}

export type TakeDecision = { readonly kind: 'turn'; readonly turn: Turn } | Exclude<FifoDecision, { kind: 'process' }>;

const isWaiting = (taken: TakeDecision | 'parked'): taken is Extract<TakeDecision, { readonly kind: 'early' | 'busy' | 'blocked' }> =>
  taken !== 'parked' && (taken.kind === 'early' || taken.kind === 'busy' || taken.kind === 'blocked');

function verdictWithoutRun(decision: Exclude<TakeDecision, { kind: 'turn' | 'old' }>, { epoch, sequence }: SequenceRef): Verdict {
  switch (decision.kind) {
    case 'early':
      return nack('early');
    case 'busy':
    case 'own':
      return nack('inProgress', decision.retryAfterMs);
    case 'blocked':
    case 'newEpoch':
      return nack('blocked');
    case 'oldEpoch':
      return deadLetter('oldEpoch', `number ${sequence} is of epoch ${epoch}, which is over`);
  }
}
