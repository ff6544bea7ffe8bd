import { lazyContext } from '../context.ts';
import { errorCodeOf, ToolkitError, textOf } from '../errors.ts';
import type { Lease } from '../lease.ts';
import type { Message } from '../message.ts';
import type { Handler } from '../ports.ts';
import { nack, type Verdict, verdictOfError } from '../verdict.ts';
import { type Cursor, keptFor, moved, type Recent, released } from './cursor.ts';
import { arrivalOf, recentOf } from './decide.ts';
import type { Hands, Item, Standing } from './hands.ts';
import { createLookAhead } from './look-ahead.ts';
import { createPerform, type PerformParts, type Stops } from './perform.ts';
import { type FifoStore, type Parked, type Place, parkedFor } from './store.ts';

export type RunParts = PerformParts & {
  readonly store: FifoStore;
  readonly hands: Hands;
  readonly bounded: <T>(what: string, call: Promise<T>) => Promise<T>;
  /** How many numbers one commit covers at most. */
  readonly commitEvery: number;
  readonly sweepAfterMs: number;
};

/** A stream that is held, and the number whose turn it is. */
export type Turn = {
  readonly place: Place;
  readonly message: Message;
  readonly lease: Lease<Cursor>;
  readonly cursor: Cursor;
  /** It came from the park, where those that follow it may be too. */
  readonly isParked: boolean;
};

/** A run that came to its end; with `stop` at a number that holds its stream up. Who still stands for it has no verdict yet. */
export type RunEnd = { readonly last: Place; readonly standing: Standing; readonly count: number; readonly stop: Verdict | undefined };

/** Runs a stream from a turn on for as long as the next number is known, and answers all but who still stands for it. */
export type Run = (turn: Turn, standing: Standing) => Promise<RunEnd>;

type Done = Item & { readonly recent: Recent | undefined };

/** @throws LEASE_LOST */
const notLost = (end: 'applied' | 'recordLost' | 'lost'): void => {
  if (end === 'lost') throw new ToolkitError('LEASE_LOST', 'another run took the stream');
};

/**
 * Runs numbers in their order for as long as the next one is known, in hand or in the park, under one lease. The cursor moves behind each of them, or
 * behind up to `commitEvery` at once, and only then their deliveries are answered (protocol 4.3 F2, F5, F7; 4.5).
 */
export function createRun(parts: RunParts, handle: Handler): Run {
  const { store, hands, telemetry, clock } = parts;
  const perform = createPerform(parts);

  return async (turn, first) => {
    const { lease } = turn;
    // After a death one number at a time: who takes its process down is not to be mistaken for the first of its group.
    const groupSize = turn.cursor.attempts > 0 ? 1 : parts.commitEvery;
    const ahead = createLookAhead(parts, turn.isParked);
    let standing = first;
    const { round } = turn.cursor;
    let { attempts, blocked } = turn.cursor;
    let group: Done[] = [];
    let count = 0;
    let item: Item = { ...turn, delivery: first.place.seq === turn.place.seq ? first : undefined };
    let next: Item | undefined;

    /** Moves the cursor over the group, and holds on for whoever stands for what follows, or gives the stream up. */
    const commit = async (by: Standing | undefined, change = (cursor: Cursor) => cursor, parked?: Parked): Promise<void> => {
      const beside = store.beside({ unpark: group.map(({ place }) => place), ...(parked && { park: parked }) });
      const last = group.at(-1)?.place.seq;
      const recent = group.flatMap((done) => done.recent ?? []);
      const next = (cursor: Cursor) => change({ ...(last === undefined ? cursor : moved(cursor, last, recent)), blocked });
      if (by) notLost(await lease.write((cursor) => keptFor(next(cursor), by.place.seq), beside));
      else notLost(await lease.end((cursor) => released(next(cursor)), 'forever', beside));
    };

    /** Answers those that the commit covers; without one, all of them are given back. */
    const answer = (staying: Standing, verdict?: Verdict): void => {
      for (const one of new Set([standing, ...group.map(({ delivery }) => delivery)]))
        if (one && one !== staying) one.settle(verdict ?? one.verdict);
      standing = staying;
    };
    const lastInHand = (): Standing => group.findLast(({ delivery }) => delivery)?.delivery ?? standing;

    /** Its number holds the stream up: committed with what is done before it. */
    const stopped = async ({ verdict, change, parks }: Stops): Promise<RunEnd> => {
      const parked = parks ? parkedFor(item.place, item.message, 'blocked', clock.nowMs(), parts.sweepAfterMs) : undefined;
      const isParked = await commit(undefined, change, parked).then(
        () => true,
        async (error: unknown) => {
          if (errorCodeOf(error) !== 'MESSAGE_TOO_LARGE') throw error;
          telemetry.count('ptk.fifo.not_parked');
          await commit(undefined, change);
          return false;
        },
      );
      answer(item.delivery ?? lastInHand());
      // What could not be parked stays where it is, and comes again.
      const stop = isParked ? verdict : nack('blocked');
      return { last: item.place, standing, count, stop: stop.kind === 'nack' || standing === item.delivery ? stop : standing.verdict };
    };

    try {
      for (;;) {
        const { place, message, delivery } = item;
        const following = { ...place, seq: place.seq + 1 };
        ahead.prefetch(following);
        const { context } = delivery ?? standing;
        const watched = lazyContext(() => AbortSignal.any([context.signal, lease.signal()]), {
          fence: lease.fence,
          ...(round > 0 && { round }),
        });
        const performed = await perform(handle, { place, message, context: watched, attempts, blocked });
        if (performed.kind === 'stops') return await stopped(performed);
        if (delivery) delivery.verdict = performed.verdict;
        attempts = 0;
        blocked = performed.blocked;
        count += 1;
        group.push({ ...item, recent: recentOf(arrivalOf(message, { epoch: place.epoch, sequence: place.seq })) });
        next = await ahead.next(following, standing);
        if (!next || group.length >= groupSize || lease.signal().aborted) {
          const staying = next?.delivery ?? lastInHand();
          await commit(next && staying);
          answer(staying);
          group = [];
          hands.call(place.stream, next ? place.seq : following.seq);
        }
        if (!next) return { last: place, standing, count, stop: undefined };
        item = next;
        next = undefined;
      }
    } catch (error) {
      const verdict = verdictOfError(error);
      if (verdict.reason === 'leaseLost') telemetry.count('ptk.fifo.lease_lost');
      telemetry.log.warn({ stream: item.place.stream, seq: item.place.seq, reason: textOf(error) }, 'cursor not moved');
      answer(standing, verdict);
      item.delivery?.settle(verdict);
      next?.delivery?.settle(nack('inProgress'));
      return { last: item.place, standing, count, stop: verdict };
    }
  };
}
