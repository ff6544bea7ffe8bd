import { textOf } from '../errors.ts';
import type { Message } from '../message.ts';
import type { Telemetry } from '../metrics.ts';
import type { System } from '../ports.ts';
import type { Verdict } from '../verdict.ts';
import type { TakeDecision } from './fifo.ts';
import type { Turn } from './head.ts';
import { cursorKeyOf, type FifoStore, type Place } from './store.ts';

/** What one sweep found: numbers run, messages removed whose number was done, streams that wait for a missing number, and that stand still. */
export type Sweep = { readonly run: number; readonly removed: number; readonly gaps: number; readonly blocked: number };

type SweepParts = {
  readonly consumer: string;
  readonly store: FifoStore;
  readonly system: System;
  readonly telemetry: Telemetry;
  readonly take: (place: Place, message: Message, by: number) => Promise<TakeDecision>;
  readonly run: (turn: Turn) => Promise<Verdict>;
  readonly bounded: <T>(what: string, call: Promise<T>) => Promise<T>;
  readonly gapReportMs: number;
  readonly sweepAfterMs: number;
};

/**
 * Goes over the streams whose parked messages are due and brings on what nobody else will: a message whose predecessor was done by a
 * process that died before it looked (protocol 4.10). Behind a lost head all is acked already, so without it a stream would be silent.
 */
export function createSweep(parts: SweepParts): () => Promise<Sweep> {
  const { consumer, store, system, telemetry, take, run, bounded } = parts;
  const { clock } = system;
  const { log, count } = telemetry;

  const sweepStream = async (stream: string, found: { run: number; removed: number; gaps: number; blocked: number }): Promise<void> => {
    for (;;) {
      const lowest = await bounded('lowest', store.lowest(consumer, stream));
      if (!lowest) return;
      const { parkedAtMs, ...place } = lowest;
      const { parked } = await bounded('look', store.look(cursorKeyOf(consumer, stream), place));
      // Taken meanwhile, by whom it belongs to.
      if (!parked) return;
      // On behalf of no delivery: this one has no copy that would come again.
      const taken = await take(place, parked, 0);
      if (taken.kind === 'old') {
        await bounded('unpark', store.unpark(place));
        found.removed += 1;
        continue;
      }
      if (taken.kind === 'early') {
        found.gaps += 1;
        const waitingMs = clock.nowMs() - parkedAtMs;
        const fields = { stream, epoch: place.epoch, seq: place.seq, missing: taken.delta - 1, waitingMs };
        if (waitingMs >= parts.gapReportMs) {
          count('ptk.fifo.gaps');
          log.error(fields, 'a stream waits for a number that has not come');
        }
      }
      if (taken.kind === 'blocked') {
        found.blocked += 1;
        log.error({ stream, ...taken.blocked }, 'stream blocked');
      }
      if (taken.kind !== 'turn') return;
      if ((await run(taken.turn)).kind === 'nack') return;
      found.run += 1;
    }
  };

  return async () => {
    const found = { run: 0, removed: 0, gaps: 0, blocked: 0 };
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
