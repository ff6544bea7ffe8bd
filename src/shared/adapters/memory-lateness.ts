import type { LatenessHour, LatenessStore } from '../delay/store.ts';

/** Counts of this process alone, gone with it: for tests. */
export function memoryLatenessStore(): LatenessStore {
  const hours = new Map<string, LatenessHour>();
  return {
    put: async (hour) => void hours.set(`${hour.hourAtMs} ${hour.counter}`, hour),
    since: async (fromMs) => [...hours.values()].filter(({ hourAtMs }) => hourAtMs >= fromMs).map(({ counts }) => ({ ...counts })),
  };
}
