import { hash } from '../names.ts';
import { type Options, readOptions } from '../options.ts';
import type { QueueState, Scheduler, System } from '../ports.ts';
import { within } from '../waiting.ts';
import { countOf, hourMs, hourOf, merged, quantileMs } from './lateness.ts';
import { delayOptions } from './options.ts';
import type { DelayLedger, DelayState, LatenessStore } from './store.ts';

export type DelayStatusParts = {
  readonly ledger: DelayLedger;
  readonly lateness: LatenessStore;
  readonly scheduler: Pick<Scheduler, 'stateOf'>;
  readonly queues: readonly string[];
  readonly system: System;
  readonly options?: Partial<Options<typeof delayOptions>>;
};

export type DelayStatus = {
  readonly queues: readonly { readonly queue: string; readonly state: QueueState }[];
  /** Entries by state; `overdue`: those that are pending or releasing though they were due more than a minute ago. */
  readonly ledger: Readonly<Record<DelayState | 'overdue', number>>;
  /**
   * Of the messages that App Engine published in the hours from `fromMs` on: upper bounds of their buckets, `Infinity` above a day; null
   * where there is no message.
   */
  readonly lateness: {
    readonly fromMs: number;
    readonly count: number;
    readonly p50Ms: number | null;
    readonly p99Ms: number | null;
    readonly highestMs: number | null;
  };
};

/** A queue that is a little behind is no reason to say anything. */
const graceMs = 60_000;
/** What is asked for the store's clock alone need not be there. */
const anyKey = hash('status');

/**
 * Whether what is delayed comes, and how late it was. Changes nothing.
 * @returns a function of the hours to look back for lateness; the hour in which they begin counts as a whole; which @throws
 * STORE_UNAVAILABLE, SERVICE_UNAVAILABLE
 */
export function createDelayStatus(parts: DelayStatusParts): (hours: number) => Promise<DelayStatus> {
  const { ledger, lateness, scheduler, queues, system } = parts;
  const { storeTimeoutMs } = readOptions(delayOptions, parts.options);
  const asked = <T>(what: string, call: Promise<T>) => within(system.clock, storeTimeoutMs, 'STORE_UNAVAILABLE', what, call);
  const count = (state: DelayState, dueBeforeMs?: number) => asked('count', ledger.count(state, dueBeforeMs));

  return async (hours) => {
    // The clock of the machine that asks may be wrong by more than the grace.
    const { nowMs } = await asked('look', ledger.look(anyKey));
    const fromMs = hourOf(nowMs - hours * hourMs);
    const [states, pending, releasing, fired, cancelled, latePending, lateReleasing, histograms] = await Promise.all([
      Promise.all(queues.map(async (queue) => ({ queue, state: await scheduler.stateOf(queue) }))),
      count('pending'),
      count('releasing'),
      count('fired'),
      count('cancelled'),
      count('pending', nowMs - graceMs),
      count('releasing', nowMs - graceMs),
      asked('since', lateness.since(fromMs)),
    ]);
    const all = merged(histograms);
    const highest = (percent: number) => quantileMs(all, percent) ?? null;
    return {
      queues: states,
      ledger: { pending, releasing, fired, cancelled, overdue: latePending + lateReleasing },
      lateness: { fromMs, count: countOf(all), p50Ms: highest(50), p99Ms: highest(99), highestMs: highest(100) },
    };
  };
}

/** Whether every queue dispatches and nothing is overdue. */
export const isOnTime = ({ queues, ledger }: DelayStatus): boolean =>
  queues.every(({ state }) => state === 'running') && ledger.overdue === 0;
