import type { DelayRecord } from '../delay/ledger.ts';
import type { DelayLedger, DelayState, Listed, Page } from '../delay/store.ts';
import type { Clock } from '../ports.ts';
import { memoryRecordStore } from './memory.ts';

/** A ledger of this process alone, gone with it: for tests. */
export function memoryDelayLedger(clock: Pick<Clock, 'nowMs'>): DelayLedger {
  const records = memoryRecordStore<DelayRecord>(clock);
  const keys = new Set<string>();
  const entries = async (state: DelayState): Promise<Listed[]> => {
    const found = await Promise.all([...keys].map(async (key) => ({ key, stored: await records.get(key) })));
    return found
      .flatMap(({ key, stored }) => (stored?.record.state === state ? [{ key, stored }] : []))
      .sort((a, b) => compared(pageOf(a), pageOf(b)));
  };
  return {
    get: records.get,
    async put(key, ...rest) {
      keys.add(key);
      return records.put(key, ...rest);
    },
    look: async (key) => ({ nowMs: clock.nowMs(), stored: await records.get(key) }),
    async inState(state, limit, after) {
      const found = await entries(state);
      return found.filter((entry) => !after || compared(pageOf(entry), after) > 0).slice(0, limit);
    },
    async count(state, dueBeforeMs = Number.POSITIVE_INFINITY) {
      return (await entries(state)).filter(({ stored }) => stored.record.dueAtMs < dueBeforeMs).length;
    },
  };
}

const pageOf = ({ key, stored }: Listed): Page => ({ key, dueAtMs: stored.record.dueAtMs });
const compared = (a: Page, b: Page): number => a.dueAtMs - b.dueAtMs || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
