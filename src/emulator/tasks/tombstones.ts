/** Names that may not be used again before an instant. All live equally long, so the oldest are in front. */
export function createTombstones(keepMs: number) {
  const freeAtMs = new Map<string, number>();
  return {
    add(name: string, nowMs: number): void {
      for (const [oldest, atMs] of freeAtMs) {
        if (atMs > nowMs) break;
        freeAtMs.delete(oldest);
      }
      freeAtMs.delete(name);
      freeAtMs.set(name, nowMs + keepMs);
    },
    has: (name: string, nowMs: number): boolean => nowMs < (freeAtMs.get(name) ?? 0),
  };
}
