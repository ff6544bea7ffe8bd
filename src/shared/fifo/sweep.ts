import { textOf } from '../errors.ts';
import type { Telemetry } from '../metrics.ts';
import type { DeadLetters, System } from '../ports.ts';
import { ack, type Verdict } from '../verdict.ts';
import { createGapDoctor, type Gaps } from './gaps.ts';
import type { Standing } from './hands.ts';
import type { Turn } from './run.ts';
import { cursorKeyOf, type FifoStore, type Place } from './store.ts';
import type { Take } from './take.ts';

/** What one sweep found: numbers run, messages removed whose number was done, streams that wait for a missing number, and that stand still. */
export type Sweep = { readonly run: number; readonly removed: number; readonly gaps: number; readonly blocked: number };

type SweepParts = {
  readonly consumer: string;
  readonly store: FifoStore;
  readonly system: System;
  readonly telemetry: Telemetry;
  readonly deadLetters: DeadLetters;
  readonly take: Take;
  readonly follow: (standing: Standing, turn: Turn) => Promise<number>;
  readonly bounded: <T>(what: string, call: Promise<T>) => Promise<T>;
  readonly gaps: Gaps | undefined;
  readonly gapTimeoutMs: number;
  readonly storeTimeoutMs: number;
  readonly sweepAfterMs: number;
};

/**
 * Goes over the streams whose parked messages are due and brings on what nobody else will: a message whose predecessor was done by a
 * process that died before it looked (protocol 4.10). Behind a lost head all is acked already, so without it a stream would be silent.
 *
 * @returns the sweep, of all that is due or of one stream
 */
export function createSweep(parts: SweepParts): (stream?: string) => Promise<Sweep> {
  const { consumer, store, system, telemetry, deadLetters, take, follow, bounded } = parts;
  const { clock } = system;
  const { log, count } = telemetry;
  const closeGap = createGapDoctor(parts);

  const sweepStream = async (stream: string, found: { run: number; removed: number; gaps: number; blocked: number }): Promise<void> => {
    for (;;) {
      const lowest = await bounded('lowest', store.lowest(consumer, stream));
      if (!lowest) return;
      const { parkedAtMs, ...place } = lowest;
      const { cursor, parked } = await bounded('look', store.look(cursorKeyOf(consumer, stream), place));
      // Taken meanwhile, by whom it belongs to.
      if (!parked) return;
      const taken = await take(place, parked, 0, { cursor, isParked: true });
      switch (taken.kind) {
        case 'turn': {
          const standing = standingForNone(place);
          found.run += await follow(standing, taken.turn);
          if (standing.isHeldUp()) return;
          continue;
        }
        case 'lost':
          await deadLetters.publish(parked, { kind: 'deadLetter', reason: taken.reason, detail: taken.detail });
          await bounded('unpark', store.unpark(place));
          found.removed += 1;
          continue;
        case 'old':
          await bounded('unpark', store.unpark(place));
          found.removed += 1;
          continue;
        case 'early': {
          found.gaps += 1;
          const waitingMs = clock.nowMs() - parkedAtMs;
          if (waitingMs < parts.gapTimeoutMs) return;
          count('ptk.fifo.gaps');
          if (await closeGap({ ...place, seq: place.seq - taken.delta + 1 }, place.seq, waitingMs)) continue;
          return;
        }
        case 'blocked':
        case 'newEpoch':
          found.blocked += 1;
          log.error({ stream, epoch: place.epoch, ...cursor?.record.blocked }, 'stream blocked');
          return;
        default:
          return;
      }
    }
  };

  return async (only) => {
    const found = { run: 0, removed: 0, gaps: 0, blocked: 0 };
    if (only !== undefined) {
      await sweepStream(only, found);
      return found;
    }
    const swept = new Set<string>();
    for (;;) {
      const due = await bounded('due', store.due(consumer, clock.nowMs()));
      if (due.length === 0) return found;
      for (const { stream } of due) {
        if (swept.has(stream)) continue;
        swept.add(stream);
        await sweepStream(stream, found).catch((error: unknown) => log.error({ stream, reason: textOf(error) }, 'stream not swept'));
      }
      await bounded('postpone', store.postpone(due, clock.nowMs() + parts.sweepAfterMs));
    }
  };
}

/** On behalf of no delivery: what is swept has no copy that would come again. */
function standingForNone(place: Place): Standing & { isHeldUp(): boolean } {
  let answered: Verdict | undefined;
  return {
    place: { ...place, seq: 0 },
    context: { signal: new AbortController().signal },
    verdict: ack('parked'),
    settle(verdict) {
      answered = verdict;
    },
    isHeldUp: () => answered?.kind === 'nack',
  };
}
