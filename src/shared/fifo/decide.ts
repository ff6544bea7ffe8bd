import type { SequenceRef } from '../message.ts';
import type { Stored } from '../ports.ts';

/** Why a stream stands still until an operator says how it goes on. */
export type Blocked = { readonly seq: number; readonly reason: 'attempts'; readonly sinceMs: number };

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
  readonly blocked: Blocked | null;
};

/** One try to take a stream: by which run, for how long, and on behalf of which delivery (0: of none). */
export type Taking = Pick<Cursor, 'runId' | 'leaseMs' | 'by'>;

export type FifoDecision =
  | { readonly kind: 'process'; readonly write: Cursor }
  | { readonly kind: 'old' }
  | { readonly kind: 'early'; readonly delta: number }
  /** Held on behalf of another delivery, which will look for what was parked meanwhile. */
  | { readonly kind: 'busy'; readonly retryAfterMs: number }
  /** Held on behalf of this very number: another copy of it. If that one's process dies, this copy is all there is. */
  | { readonly kind: 'own'; readonly retryAfterMs: number }
  | { readonly kind: 'blocked'; readonly blocked: Blocked }
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
  ref: Pick<SequenceRef, 'epoch' | 'sequence'>,
  taking: Taking,
): FifoDecision {
  const cursor = current?.record;
  if (cursor && ref.epoch !== cursor.epoch) return { kind: ref.epoch < cursor.epoch ? 'oldEpoch' : 'newEpoch' };
  const delta = ref.sequence - (cursor?.last ?? 0);
  if (delta < 1) return { kind: 'old' };
  if (cursor?.blocked) return { kind: 'blocked', blocked: cursor.blocked };
  if (delta > 1) return { kind: 'early', delta };
  if (current && cursor?.runId) {
    const retryAfterMs = current.writtenAtMs + cursor.leaseMs - current.nowMs;
    if (retryAfterMs > 0) return { kind: cursor.by === taking.by ? 'own' : 'busy', retryAfterMs };
  }
  const outlived = cursor?.runId && cursor.started === ref.sequence ? 1 : 0;
  return {
    kind: 'process',
    write: {
      rev: (cursor?.rev ?? 0) + 1,
      last: ref.sequence - 1,
      epoch: ref.epoch,
      ...taking,
      started: ref.sequence,
      attempts: (cursor?.attempts ?? 0) + outlived,
      blocked: null,
    },
  };
}

const free = { runId: '', by: 0 } as const;

/** The cursor once the number is done: moved on, and the stream free, in one write. */
export const advanced = (cursor: Cursor): Cursor => ({ ...cursor, ...free, last: cursor.started, attempts: 0 });

/** The cursor after a run that did not end its number: where it was, and the stream free for the next try. */
export const released = (cursor: Cursor): Cursor => ({ ...cursor, ...free });

/** The same after a failure, which counts. */
export const failed = (cursor: Cursor): Cursor => ({ ...cursor, ...free, attempts: cursor.attempts + 1 });

/** The stream stands still at the number whose attempts are used up. */
export const stopped = (cursor: Cursor, sinceMs: number): Cursor => ({
  ...failed(cursor),
  blocked: { seq: cursor.started, reason: 'attempts', sinceMs },
});
