import { errorCodeOf } from '../errors.ts';
import { type Options, readOptions } from '../options.ts';
import type { QueueState, Scheduler, System } from '../ports.ts';
import { settledPut } from '../settled.ts';
import { armRecord, taskNamesOf } from './arming.ts';
import { awaitsTask, queueOf } from './decide.ts';
import { rearmed } from './ledger.ts';
import { delayOptions } from './options.ts';
import { pagesOf } from './pages.ts';
import type { DelayLedger, DelayState, Listed } from './store.ts';

export type RepairParts = {
  readonly ledger: DelayLedger;
  readonly scheduler: Scheduler;
  readonly queues: readonly string[];
  readonly system: System;
  readonly options?: Partial<Options<typeof delayOptions>>;
};

export type Repaired = {
  readonly queues: readonly { readonly queue: string; readonly state: QueueState }[];
  /** Entries that were looked at. */
  readonly checked: number;
  /** Entries whose task was gone, and which have one again. */
  readonly rearmed: number;
  /** Entries that are overdue though their task is there: a queue that is paused or behind. */
  readonly overdue: number;
  /** Entries whose task was gone, and which could not get one. */
  readonly failed: number;
};

/** Whoever wrote an entry so lately may still be making its task, and late by so much is no reason to say anything. */
const graceMs = 60_000;

/**
 * Gives every entry of the ledger whose task is gone a task again, under a new name (protocol 5.7): after a queue was purged or deleted, or a
 * publisher died between entry and task. May run beside everything else, and twice.
 * @returns a function that @throws STORE_UNAVAILABLE, SERVICE_UNAVAILABLE
 */
export function createRepair(parts: RepairParts): () => Promise<Repaired> {
  const { ledger, scheduler, queues, system } = parts;
  const { storeTimeoutMs } = readOptions(delayOptions, parts.options);
  const storeParts = { store: ledger, system, storeTimeoutMs };

  const isArmed = async ({ stored }: Listed): Promise<boolean> => {
    for (const name of taskNamesOf(stored.record)) if (await scheduler.exists(name)) return true;
    return false;
  };

  /** A task that was gone a moment ago may have done its work since: then the write is refused. */
  const rearm = async ({ key, stored }: Listed): Promise<boolean> => {
    const { record } = stored;
    const queue = queues.includes(record.queue) ? record.queue : queueOf(record.id, queues);
    const write = rearmed(record, queue, stored.nowMs, system.randomId());
    const put = await settledPut(storeParts, key, write, stored.version, 'forever');
    if (put.kind !== 'applied') return false;
    await armRecord(scheduler, write);
    return true;
  };

  return async () => {
    const states = await Promise.all(queues.map(async (queue) => ({ queue, state: await scheduler.stateOf(queue) })));
    const counts = { checked: 0, rearmed: 0, overdue: 0, failed: 0 };
    const look = async (entry: Listed) => {
      if (!awaitsTask(entry.stored, graceMs)) return;
      counts.checked += 1;
      if (await isArmed(entry)) {
        if (entry.stored.record.dueAtMs < entry.stored.nowMs - graceMs) counts.overdue += 1;
        return;
      }
      try {
        if (await rearm(entry)) counts.rearmed += 1;
      } catch (error) {
        if (errorCodeOf(error) === undefined) throw error;
        counts.failed += 1;
      }
    };
    for (const state of ['pending', 'releasing'] satisfies DelayState[])
      for await (const page of pagesOf({ ledger, system, storeTimeoutMs }, state)) await Promise.all(page.map(look));
    return { queues: states, ...counts };
  };
}
