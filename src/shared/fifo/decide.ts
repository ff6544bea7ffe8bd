import type { SequenceRef } from '../message.ts';
import type { Stored } from '../ports.ts';

/** How far one consumer has come in one stream (**wire**). */
export type Cursor = {
  readonly rev: number;
  /** The last number that is done; 0 before the first. */
  readonly last: number;
  readonly epoch: number;
  /** Who holds the stream; empty when nobody does. */
  readonly runId: string;
  /** Number of the delivery on whose behalf the lease is held. */
  readonly by: number;
  /** Number whose handler may have begun. */
  readonly started: number;
  readonly leaseMs: number;
  /** Take-overs and failures of the number at the head. */
  readonly attempts: number;
};

export type FifoDecision =
  | { readonly kind: 'process'; readonly write: Cursor }
  | { readonly kind: 'old' }
  | { readonly kind: 'early'; readonly delta: number }
  | { readonly kind: 'busy'; readonly retryAfterMs: number }
  | { readonly kind: 'oldEpoch' }
  | { readonly kind: 'newEpoch' };

/**
 * Decides by delta = number − last: 1 is the head and is processed, above 1 is early, below 1 is old (protocol 4.2). A
 * message of another epoch has no delta: its publisher's counter was made anew.
 *
 * @param current the cursor, with the store's own clock: `writtenAtMs` and `nowMs`, both of one read
 */
export function decideSequence(
  current: Stored<Cursor> | undefined,
  ref: SequenceRef,
  { runId, leaseMs }: Pick<Cursor, 'runId' | 'leaseMs'>,
): FifoDecision {
  const cursor = current?.record;
  if (cursor && ref.epoch !== cursor.epoch) return { kind: ref.epoch < cursor.epoch ? 'oldEpoch' : 'newEpoch' };
  const delta = ref.sequence - (cursor?.last ?? 0);
  if (delta < 1) return { kind: 'old' };
  if (delta > 1) return { kind: 'early', delta };
  if (current && cursor?.runId) {
    const leaseEndsAtMs = current.writtenAtMs + cursor.leaseMs;
    if (current.nowMs < leaseEndsAtMs) return { kind: 'busy', retryAfterMs: leaseEndsAtMs - current.nowMs };
  }
  const outlived = cursor?.runId && cursor.started === ref.sequence ? 1 : 0;
  return {
    kind: 'process',
    write: {
      rev: (cursor?.rev ?? 0) + 1,
      last: ref.sequence - 1,
      epoch: ref.epoch,
      runId,
      by: ref.sequence,
      started: ref.sequence,
      leaseMs,
      attempts: (cursor?.attempts ?? 0) + outlived,
    },
  };
}

/** The cursor once the number is done: moved on, and the stream free, in one write. */
export const advanced = (cursor: Cursor): Cursor => ({ ...cursor, last: cursor.started, runId: '', by: 0, attempts: 0 });

/** The cursor after a failure: where it was, and the stream free for the next try. */
export const released = (cursor: Cursor): Cursor => ({ ...cursor, runId: '', by: 0, attempts: cursor.attempts + 1 });
