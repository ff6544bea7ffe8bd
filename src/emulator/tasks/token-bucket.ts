export type Rate = { readonly perSecond: number; readonly burst: number };
export type Bucket = { readonly tokens: number; readonly filledAtMs: number };

/**
 * A token that is missing less than this has come: sums of fractions do not reach whole numbers. At 500 a second it still takes longer
 * than the quarter of a microsecond by which instants of today differ; a shorter wait would end at the instant at which it began.
 */
const roundingError = 2e-4;

export function refill(bucket: Bucket, { perSecond, burst }: Rate, nowMs: number): Bucket {
  const gained = (Math.max(nowMs - bucket.filledAtMs, 0) * perSecond) / 1000;
  return { tokens: Math.min(bucket.tokens + gained, burst), filledAtMs: nowMs };
}

/** Takes one token of a bucket that is filled up to now, or tells when there will be one. */
export function takeToken(bucket: Bucket, rate: Rate): { kind: 'taken'; bucket: Bucket } | { kind: 'wait'; untilMs: number } {
  if (bucket.tokens < 1 - roundingError) {
    return { kind: 'wait', untilMs: bucket.filledAtMs + ((1 - bucket.tokens) * 1000) / rate.perSecond };
  }
  return { kind: 'taken', bucket: { ...bucket, tokens: Math.max(bucket.tokens - 1, 0) } };
}
