import type { Journal } from '../journal.ts';

export type Tombstones = ReturnType<typeof createTombstones>;

/** Names that may not be used again before an instant. All live equally long, so the oldest are in front. */
export function createTombstones(kind: string, keepMs: number, journal: Journal) {
  const oldestFirst = [...journal.load<number>(kind)].sort(([, a], [, b]) => a - b);
  const freeAtMs = new Map<string, number>(oldestFirst);
  const drop = (name: string) => {
    freeAtMs.delete(name);
    journal.delete(kind, name);
  };
  return {
    add(name: string, nowMs: number): void {
      for (const [oldest, atMs] of freeAtMs) {
        if (atMs > nowMs) break;
        drop(oldest);
      }
      freeAtMs.delete(name);
      freeAtMs.set(name, nowMs + keepMs);
      journal.put(kind, name, nowMs + keepMs);
    },
    has: (name: string, nowMs: number): boolean => nowMs < (freeAtMs.get(name) ?? 0),
    clear(): void {
      for (const name of freeAtMs.keys()) drop(name);
    },
  };
}
