import { textOf } from '../errors.ts';
import type { Telemetry } from '../metrics.ts';
import type { System } from '../ports.ts';
import { nack, type Verdict, verdictOfError } from '../verdict.ts';
import { arrivalOf, decideSequence } from './decide.ts';
import type { Hands, Standing } from './hands.ts';
import type { Run, Turn } from './run.ts';
import { cursorKeyOf, type FifoStore, type Place } from './store.ts';
import type { Take } from './take.ts';

export type FollowParts = {
  readonly consumer: string;
  readonly store: FifoStore;
  readonly system: System;
  readonly telemetry: Telemetry;
  readonly hands: Hands;
  readonly bounded: <T>(what: string, call: Promise<T>) => Promise<T>;
  readonly leaseMs: number;
  readonly take: Take;
  readonly run: Run;
};

/** Runs a stream from a turn on, and whatever is left behind then, and answers whoever stands for it. Resolves to how many numbers were run. */
export type Follow = (standing: Standing, turn?: Turn) => Promise<number>;

/**
 * Work left behind (protocol 4.3, F6): the next number, if it is parked and nobody else answers for it. Until that is certain the delivery
 * stays unacked, so if this process dies, it comes again and looks again.
 */
export function createFollow(parts: FollowParts): Follow {
  const { consumer, store, system, hands, bounded, leaseMs, take } = parts;
  const { log } = parts.telemetry;

  const leftBehind = async (after: Place, standing: Standing): Promise<Turn | Verdict> => {
    for (let seq = after.seq + 1; ; ) {
      const place = { ...after, seq };
      const { cursor, parked } = await bounded('look', store.look(cursorKeyOf(consumer, after.stream), place));
      if (!cursor || cursor.record.epoch !== after.epoch) return standing.verdict;
      if (cursor.record.last + 1 !== seq) {
        seq = cursor.record.last + 1;
        continue;
      }
      const taking = { runId: system.randomId(), leaseMs, by: standing.place.seq };
      const arrival = parked ? arrivalOf(parked, { epoch: place.epoch, sequence: seq }) : unknownArrival(place);
      const decision = decideSequence(cursor, arrival, taking, 1);
      if (decision.kind === 'own') return nack('inProgress', decision.retryAfterMs);
      if (!parked || decision.kind !== 'process') return standing.verdict;
      const taken = await take(place, parked, standing.place.seq, { cursor, isParked: true });
      if (taken.kind === 'turn') return taken.turn;
    }
  };

  return async (first, begun) => {
    let standing = first;
    let turn = begun;
    let last = first.place;
    let count = 0;
    try {
      for (;;) {
        if (turn) {
          const run = turn;
          const end = await hands.running(run.place.stream, () => parts.run(run, standing));
          ({ standing, last } = end);
          count += end.count;
          if (end.stop) {
            standing.settle(end.stop);
            break;
          }
        }
        const left = await leftBehind(last, standing);
        if ('kind' in left) {
          standing.settle(left);
          break;
        }
        turn = left;
      }
    } catch (error) {
      log.warn({ stream: last.stream, reason: textOf(error) }, 'not looked for what is left behind');
      standing.settle(verdictOfError(error));
    }
    hands.call(last.stream, last.seq + 1);
    return count;
  };
}

/** The number that would be next, and is not there. */
const unknownArrival = ({ epoch, seq }: Place) => ({ epoch, sequence: seq, key: '', originMs: undefined, isTombstone: false });
