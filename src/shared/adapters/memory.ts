import type { Clock, RecordStore, Revised, Stored } from '../ports.ts';

type Entry<R> = { record: R; version: string; writtenAtMs: number };

/**
 * Records of this process alone, gone with it: for tests and for effects that live no longer than the process. Keeps expired
 * records as Firestore does.
 */
export function memoryRecordStore<R extends Revised>(clock: Pick<Clock, 'nowMs'>): RecordStore<R> {
  const entries = new Map<string, Entry<R>>();
  let versions = 0;
  const stored = (key: string): Stored<R> | undefined => {
    const entry = entries.get(key);
    return entry && { ...entry, record: { ...entry.record }, nowMs: clock.nowMs() };
  };
  return {
    get: async (key) => stored(key),
    put: async (key, record, expected) => {
      if ((entries.get(key)?.version ?? 'absent') !== expected) return { conflict: stored(key) };
      const version = String(++versions);
      entries.set(key, { record: { ...record }, version, writtenAtMs: clock.nowMs() });
      return { version };
    },
  };
}
