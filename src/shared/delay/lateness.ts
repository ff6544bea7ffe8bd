/**
 * How many messages were late by how much (**wire**): counts by the upper bound of their bucket in ms, as text; `Infinity` for what is later
 * than the last bound. Buckets without messages are left out.
 */
export type Histogram = Readonly<Record<string, number>>;

/** A message belongs to the first bound that is not below its lateness. */
export const latenessBoundsMs: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1_000, 2_000, 5_000, 10_000, 20_000, 30_000],
  ...[60_000, 120_000, 300_000, 600_000, 1_800_000],
  ...[3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000],
];

const boundOf = (latenessMs: number): number => latenessBoundsMs.find((boundMs) => latenessMs <= boundMs) ?? Number.POSITIVE_INFINITY;

/** One message more. */
export const counted = (histogram: Histogram, latenessMs: number): Histogram => merged([histogram, { [boundOf(latenessMs)]: 1 }]);

/** The messages of all. */
export function merged(histograms: readonly Histogram[]): Histogram {
  const sum: Record<string, number> = {};
  for (const histogram of histograms) for (const [bound, count] of Object.entries(histogram)) sum[bound] = (sum[bound] ?? 0) + count;
  return sum;
}

export const countOf = (histogram: Histogram): number => Object.values(histogram).reduce((sum, count) => sum + count, 0);

/**
 * How late the given percentage of the messages was at most: the upper bound of a bucket, in ms, and so never too low and up to three times too
 * high; `Infinity` above a day; `undefined` where nothing is counted.
 * @param percent whole, from 1 to 100; 100 for the highest
 */
export function quantileMs(histogram: Histogram, percent: number): number | undefined {
  const rank = Math.ceil((countOf(histogram) * percent) / 100);
  let reached = 0;
  for (const [bound, count] of Object.entries(histogram).sort(([a], [b]) => Number(a) - Number(b))) {
    reached += count;
    if (reached >= rank) return Number(bound);
  }
  return undefined;
}

/** What is stored, without what is no count: an entry that somebody edited spoils no other. */
export function readHistogram(stored: unknown): Histogram {
  const entries: [string, unknown][] = typeof stored === 'object' && stored !== null ? Object.entries(stored) : [];
  return Object.fromEntries(
    entries.filter((entry): entry is [string, number] => Number(entry[0]) > 0 && Number.isSafeInteger(entry[1]) && Number(entry[1]) > 0),
  );
}

/** Of what processes counted in an hour that is over; long enough to look a week back. */
export const latenessKeepMs = 8 * 86_400_000;
/** The longest look back. */
export const latenessHours = 7 * 24;

export const hourMs = 3_600_000;
export const hourOf = (atMs: number): number => Math.floor(atMs / hourMs) * hourMs;
