import { holdLease } from '../lease.ts';
import type { Message } from '../message.ts';
import type { Telemetry } from '../metrics.ts';
import type { Log, Stored, System } from '../ports.ts';
import { settledGet, settledPut } from '../settled.ts';
import { pause } from '../waiting.ts';
import { type Cursor, freshCursor } from './cursor.ts';
import { arrivalOf, decideNewEpoch, decideSequence, type FifoDecision, type StartAt } from './decide.ts';
import type { Turn } from './run.ts';
import { cursorKeyOf, type FifoStore, type Place, parkedFor } from './store.ts';

export type TakeParts = {
  readonly consumer: string;
  readonly store: FifoStore;
  readonly system: System;
  readonly log: Log;
  readonly telemetry: Telemetry;
  readonly bounded: <T>(what: string, call: Promise<T>) => Promise<T>;
  readonly leaseMs: number;
  readonly storeTimeoutMs: number;
  readonly sweepAfterMs: number;
  readonly startSettleMs: number;
  readonly startAt: StartAt;
  /** A newer epoch is followed at once. */
  readonly follows: boolean;
};

/** The stream for a number, or why not. */
export type Taken = { readonly kind: 'turn'; readonly turn: Turn } | Exclude<FifoDecision, { kind: 'process' | 'unstarted' }>;

export type Take = (
  place: Place,
  message: Message,
  /** Number of the delivery on whose behalf; 0 for none. */
  by: number,
  /** What the caller has just read. */
  seen?: { readonly cursor: Stored<Cursor> | undefined; readonly isParked: boolean },
) => Promise<Taken>;

/** One try to take a stream for a number (protocol 4.3, F0 and F1); a lost race is decided on what the winner wrote. */
export function createTake(parts: TakeParts): Take {
  const { consumer, store, system, log, telemetry, bounded, leaseMs, startAt } = parts;
  const { clock } = system;

  /** The lowest number that is there after a while: the first to arrive need not be the first. */
  const start = async (key: string, place: Place, message: Message): Promise<void> => {
    await bounded('park', store.park(parkedFor(place, message, 'start', clock.nowMs(), parts.sweepAfterMs)));
    await pause(clock, parts.startSettleMs);
    const lowest = (await bounded('lowest', store.lowest(consumer, place.stream))) ?? place;
    // Whoever is first decides for all.
    await settledPut(parts, key, { ...freshCursor(lowest.epoch, lowest.seq), rev: 1, opId: system.randomId() }, 'absent', 'forever');
    log.info({ stream: place.stream, epoch: lowest.epoch, seq: lowest.seq }, 'stream starts at the first number seen');
  };

  const newEpoch = async (key: string, current: Stored<Cursor>, { stream, epoch, seq }: Place): Promise<'changed' | 'waits'> => {
    const rules = { writeId: system.randomId(), follows: parts.follows, startAt, nowMs: clock.nowMs() };
    const write = decideNewEpoch(current, { epoch, sequence: seq }, rules);
    if (!write) return 'waits';
    const put = await settledPut(parts, key, write, current.version, 'forever');
    if (put.kind === 'lost') return 'changed';
    const fields = { stream, epoch, before: current.record.epoch, last: current.record.last };
    if (parts.follows) {
      log.warn(fields, 'stream goes on in a newer epoch');
      return 'changed';
    }
    telemetry.count('ptk.fifo.blocked', { reason: 'epoch' });
    log.error(fields, 'stream blocked: its publisher numbers in a newer epoch');
    return 'waits';
  };

  return async (place, message, by, seen) => {
    const key = cursorKeyOf(consumer, place.stream);
    const taking = { runId: system.randomId(), leaseMs, by };
    const arrival = arrivalOf(message, { epoch: place.epoch, sequence: place.seq });
    let current = seen ? seen.cursor : await settledGet(parts, key);
    for (;;) {
      const decision = decideSequence(current, arrival, taking, startAt);
      if (decision.kind === 'unstarted') {
        await start(key, place, message);
        current = await settledGet(parts, key);
        continue;
      }
      if (decision.kind === 'newEpoch' && current) {
        if ((await newEpoch(key, current, place)) === 'waits') return decision;
        current = await settledGet(parts, key);
        continue;
      }
      if (decision.kind !== 'process') return decision;
      const cursor = decision.write;
      const put = await settledPut(parts, key, cursor, current?.version ?? 'absent', 'forever');
      if (put.kind === 'applied') {
        const lease = holdLease<Cursor>(parts, log, { ...put, key, record: cursor, keepMs: 'forever' });
        return { kind: 'turn', turn: { place, message, lease, cursor, isParked: seen?.isParked ?? false } };
      }
      current = put.current;
    }
  };
}
