/** One run of the final handler, as it stands in `ptk-demo-effects`. */
export type Effect = {
  readonly key: string;
  /** Empty for a message that is not sequenced. */
  readonly stream: string;
  readonly seq: number;
  /** 0 for a message that is not delayed. */
  readonly dueMs: number;
  /** When the effect was committed, by the database; orders the effects. */
  readonly committedAt: { readonly seconds: number; readonly nanoseconds: number };
};

export type Findings = {
  readonly effects: number;
  readonly lost: number;
  readonly doubled: number;
  readonly outOfOrder: number;
  readonly early: number;
};

/** What went wrong: each count is 0 where every message had its effect once, in order, and not before its time. */
export function checkEffects(publishedKeys: readonly string[], effects: readonly Effect[]): Findings {
  const inTime = [...effects].sort(
    (a, b) => a.committedAt.seconds - b.committedAt.seconds || a.committedAt.nanoseconds - b.committedAt.nanoseconds,
  );
  const runs = new Map<string, number>();
  const highest = new Map<string, number>();
  let outOfOrder = 0;
  let early = 0;
  for (const { key, stream, seq, dueMs, committedAt } of inTime) {
    runs.set(key, (runs.get(key) ?? 0) + 1);
    if (committedAt.seconds * 1_000 + Math.floor(committedAt.nanoseconds / 1_000_000) < dueMs) early += 1;
    if (stream === '') continue;
    const last = highest.get(stream) ?? 0;
    if (seq < last) outOfOrder += 1;
    highest.set(stream, Math.max(last, seq));
  }
  const doubled = [...runs.values()].reduce((sum, times) => sum + times - 1, 0);
  return { effects: effects.length, lost: publishedKeys.filter((key) => !runs.has(key)).length, doubled, outOfOrder, early };
}
