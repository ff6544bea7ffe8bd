import { setTimeout as pause } from 'node:timers/promises';
import type { DelayLedger } from '../../../src/shared/delay/store.ts';
import type { RecordStore, Revised, Scheduler } from '../../../src/shared/ports.ts';

/** What a control does without. */
export type Protection =
  | 'hashed task names'
  | 'the task before the ack'
  | 'the dedup of the release'
  | 'the version of the ledger'
  | '429 for a busy release'
  | 'the repair';

type Without = Protection | 'nothing';

const ackedWithinMs = 100;

/** Every try makes a task of its own. */
export const unprotectedNames = (scheduler: Scheduler, without: Without): Scheduler =>
  without === 'hashed task names'
    ? { ...scheduler, schedule: (task) => scheduler.schedule({ ...task, id: `${task.id}-${Math.random().toString(36).slice(2)}` }) }
    : scheduler;

/** The message is acked first, and its task is made then. */
export const unprotectedAck = (scheduler: Scheduler, without: Without): Scheduler =>
  without === 'the task before the ack'
    ? { ...scheduler, schedule: async (task) => void pause(ackedWithinMs).then(() => scheduler.schedule(task)) }
    : scheduler;

/** Nobody knows what was released before. */
export const unprotectedDedup = <R extends Revised>(store: RecordStore<R>, without: Without): RecordStore<R> =>
  without === 'the dedup of the release' ? { get: async () => undefined, put: async () => ({ version: 'any' }) } : store;

/** Who writes last wins, whatever was read. */
export const unprotectedLedger = (ledger: DelayLedger, without: Without): DelayLedger =>
  without === 'the version of the ledger'
    ? {
        ...ledger,
        async put(key, record, expected, keepMs) {
          const found = expected === 'absent' ? undefined : await ledger.get(key);
          return ledger.put(key, record, found?.version ?? expected, keepMs);
        },
      }
    : ledger;
