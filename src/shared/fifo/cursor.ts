import { ToolkitError } from '../errors.ts';

/** Why a stream stands still until an operator says how it goes on; with a lane its numbers go there meanwhile. */
export type Blocked = {
  readonly seq: number;
  /** `epoch`: numbers of a newer epoch came, so the publisher's counter was made anew. */
  readonly reason: 'attempts' | 'epoch';
  readonly sinceMs: number;
  readonly lane?: string;
  /** The newer one. */
  readonly epoch?: number;
};

/** A number that was done lately, and under which key: the first digits of its hash, empty for a message that has none. */
export type Recent = { readonly seq: number; readonly key: string; readonly originMs: number };

/** How far one consumer has come in one stream (**wire**). */
export type Cursor = {
  readonly rev: number;
  /** The last number that is done; `start` − 1 before the first. */
  readonly last: number;
  /** The first number that this consumer handles. */
  readonly start: number;
  readonly epoch: number;
  /** The epoch before this one, and how far it was done. */
  readonly prevEpoch: number;
  readonly prevLast: number;
  /** Grows when an operator has numbers handled again; part of the scope of their dedup keys. */
  readonly round: number;
  /** Who holds the stream; empty when nobody does. */
  readonly runId: string;
  /** While nobody does: whose write left it so. */
  readonly opId: string;
  /** Number of the delivery on whose behalf the lease is held. */
  readonly by: number;
  /** Number whose handler may have begun. */
  readonly started: number;
  readonly leaseMs: number;
  /** Take-overs and failures of the number at the head. */
  readonly attempts: number;
  readonly blocked: Blocked | null;
  /** Numbers that were passed over without their messages. */
  readonly skipped: readonly number[];
  readonly recent: readonly Recent[];
};

const mostSkipped = 1_000;
const mostRecent = 20;

/** A consumer's position before its first number. */
export const freshCursor = (epoch: number, start: number): Cursor => ({
  rev: 0,
  last: start - 1,
  start,
  epoch,
  prevEpoch: 0,
  prevLast: 0,
  round: 0,
  runId: '',
  opId: '',
  by: 0,
  started: 0,
  leaseMs: 0,
  attempts: 0,
  blocked: null,
  skipped: [],
  recent: [],
});

const numbers = ['rev', 'last', 'start', 'epoch', 'prevEpoch', 'prevLast', 'round', 'by', 'started', 'leaseMs', 'attempts'] as const;

/**
 * A stored cursor; fields that an earlier version did not write are as they were then.
 * @throws RECORD_UNREADABLE for one that was edited into something else
 */
export function cursorOf(record: Partial<Cursor>, key: string): Cursor {
  const cursor = { ...freshCursor(Number.NaN, Number.NaN), start: 1, ...record };
  const unfit = numbers.find((name) => !Number.isSafeInteger(cursor[name]) || cursor[name] < 0);
  const lists = Array.isArray(cursor.skipped) && Array.isArray(cursor.recent);
  if (
    unfit === undefined &&
    lists &&
    typeof cursor.runId === 'string' &&
    typeof cursor.opId === 'string' &&
    typeof cursor.blocked === 'object'
  )
    return cursor;
  throw new ToolkitError(
    'RECORD_UNREADABLE',
    `the cursor ${key} has ${unfit === undefined ? 'fields of other forms' : `${unfit} ${cursor[unfit]}`}`,
  );
}

/** By its own run, or by a write that held it not: two of these on one version must not be taken for each other. */
const freed = (cursor: Cursor, writeId: string): Cursor => ({ ...cursor, runId: '', opId: writeId, by: 0 });

/** Moved behind a number that is done, with those of the numbers up to it that are to be remembered. */
export const moved = (cursor: Cursor, last: number, recent: readonly Recent[]): Cursor => ({
  ...cursor,
  last,
  attempts: 0,
  recent: [...cursor.recent, ...recent].slice(-mostRecent),
});

/** Held on, for the number that follows. */
export const keptFor = (cursor: Cursor, by: number): Cursor => ({ ...cursor, by, started: cursor.last + 1 });

/** Where it was, and the stream free for the next try. */
export const released = (cursor: Cursor): Cursor => (cursor.runId === '' ? cursor : freed(cursor, cursor.runId));

/** The same after a failure, which counts. */
export const failed = (cursor: Cursor): Cursor => ({ ...released(cursor), attempts: cursor.attempts + 1 });

/** The stream stands still at the number that follows. */
export const stopped = (cursor: Cursor, sinceMs: number): Cursor => ({
  ...failed(cursor),
  blocked: { seq: cursor.last + 1, reason: 'attempts', sinceMs },
});

/** Numbers of a newer epoch wait until an operator has said what becomes of this one. */
export const heldByEpoch = (cursor: Cursor, writeId: string, blocked: Pick<Blocked, 'epoch' | 'seq' | 'sinceMs'>): Cursor => ({
  ...freed(cursor, writeId),
  rev: cursor.rev + 1,
  blocked: { ...blocked, reason: 'epoch' },
});

/** The position in another epoch; what came before is remembered, so that late copies of it are known. */
export const inEpoch = (cursor: Cursor, writeId: string, epoch: number, start: number): Cursor => ({
  ...freed(freshCursor(epoch, start), writeId),
  rev: cursor.rev + 1,
  prevEpoch: cursor.epoch,
  prevLast: cursor.last,
  round: cursor.round,
});

/** One number on, without its message. */
export const skippedNext = (cursor: Cursor, writeId: string): Cursor => ({
  ...freed(cursor, writeId),
  rev: cursor.rev + 1,
  last: cursor.last + 1,
  attempts: 0,
  blocked: null,
  skipped: [...cursor.skipped, cursor.last + 1].slice(-mostSkipped),
});

/** Goes on where it stood. */
export const resumed = (cursor: Cursor, writeId: string): Cursor => ({
  ...freed(cursor, writeId),
  rev: cursor.rev + 1,
  attempts: 0,
  blocked: null,
});

/** Goes back, so that its numbers from there are handled again. */
export const replayedFrom = (cursor: Cursor, writeId: string, from: number): Cursor => ({
  ...resumed(cursor, writeId),
  last: from - 1,
  start: Math.min(cursor.start, from),
  round: cursor.round + 1,
  skipped: cursor.skipped.filter((seq) => seq < from),
  recent: cursor.recent.filter(({ seq }) => seq < from),
});
