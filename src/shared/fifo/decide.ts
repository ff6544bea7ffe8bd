import { attribute, type Message, type SequenceRef } from '../message.ts';
import { hash } from '../names.ts';
import type { Stored } from '../ports.ts';
import { type Cursor, cursorOf, freshCursor, heldByEpoch, inEpoch, type Recent } from './cursor.ts';

/** One try to take a stream: by which run, for how long, and on behalf of which delivery (0: of none). */
export type Taking = Pick<Cursor, 'runId' | 'leaseMs' | 'by'>;

/** What arrives: a number, and how its message is told from another one of that number. */
export type Arrival = Pick<SequenceRef, 'epoch' | 'sequence'> & {
  readonly key: string;
  readonly originMs: number | undefined;
  readonly isTombstone: boolean;
};

export type FifoDecision =
  | { readonly kind: 'process'; readonly write: Cursor }
  | { readonly kind: 'old' }
  /** Old, and yet not known to be a copy: it is reported, and not just acked. */
  | { readonly kind: 'lost'; readonly reason: 'skipped' | 'sequenceReused' | 'beforeStart' | 'oldEpoch'; readonly detail: string }
  | { readonly kind: 'early'; readonly delta: number }
  /** Held on behalf of another delivery, which will look for what was parked meanwhile. */
  | { readonly kind: 'busy'; readonly retryAfterMs: number }
  /** Held on behalf of this very number: another copy of it. If that one's process dies, this copy is all there is. */
  | { readonly kind: 'own'; readonly retryAfterMs: number }
  | { readonly kind: 'blocked' }
  | { readonly kind: 'newEpoch'; readonly cursor: Cursor }
  /** The consumer's first message, where it starts at the first that it sees. */
  | { readonly kind: 'unstarted' };

/** Where a consumer starts in a stream that it has not seen. */
export type StartAt = number | 'firstSeen';

const keyDigits = 16;

export function arrivalOf({ attributes }: Message, { epoch, sequence }: Pick<SequenceRef, 'epoch' | 'sequence'>): Arrival {
  const key = attributes[attribute.key];
  const originMs = Date.parse(attributes[attribute.originTime] ?? '');
  return {
    epoch,
    sequence,
    key: key === undefined ? '' : hash(key).slice(0, keyDigits),
    originMs: Number.isNaN(originMs) ? undefined : originMs,
    isTombstone: attributes[attribute.tombstone] !== undefined,
  };
}

/** What a cursor remembers of a number that is done. */
export const recentOf = ({ sequence, key, originMs }: Arrival): Recent | undefined =>
  key === '' || originMs === undefined ? undefined : { seq: sequence, key, originMs };

/** How long a stream is held still, by the store's own clock; 0 when nobody holds it. */
export const heldMs = (current: Stored<Cursor> | undefined): number =>
  current?.record.runId ? Math.max(current.writtenAtMs + current.record.leaseMs - current.nowMs, 0) : 0;

/**
 * Decides by delta = number − last: 1 is the head and is processed, above 1 is early, below 1 is old (protocol 4.2). A message of another
 * epoch has no delta: its publisher's counter was made anew.
 *
 * @param current the cursor, with the store's own clock: `writtenAtMs` and `nowMs`, both of one read
 * @throws RECORD_UNREADABLE
 */
export function decideSequence(current: Stored<Cursor> | undefined, arrival: Arrival, taking: Taking, startAt: StartAt): FifoDecision {
  if (!current && startAt === 'firstSeen') return { kind: 'unstarted' };
  const cursor = current ? cursorOf(current.record, 'of the stream') : freshCursor(arrival.epoch, Number(startAt));
  if (arrival.epoch > cursor.epoch) return { kind: 'newEpoch', cursor };
  if (arrival.epoch < cursor.epoch) return decideOldEpoch(cursor, arrival);
  const delta = arrival.sequence - cursor.last;
  if (delta < 1) return decideOld(cursor, arrival);
  if (cursor.blocked && cursor.blocked.lane === undefined) return { kind: 'blocked' };
  if (delta > 1) return { kind: 'early', delta };
  const retryAfterMs = heldMs(current);
  if (retryAfterMs > 0) return { kind: cursor.by === taking.by ? 'own' : 'busy', retryAfterMs };
  const outlived = cursor.runId !== '' && cursor.started === arrival.sequence ? 1 : 0;
  const write = { ...cursor, rev: cursor.rev + 1, ...taking, started: arrival.sequence, attempts: cursor.attempts + outlived };
  return { kind: 'process', write };
}

/** A copy of what is done, or a message that nobody has seen under a number that is used up (protocol 4.2, 4.8). */
function decideOld({ start, skipped, recent }: Cursor, { sequence, key, originMs, isTombstone }: Arrival): FifoDecision {
  if (isTombstone) return { kind: 'old' };
  const lost = (reason: 'skipped' | 'sequenceReused' | 'beforeStart', detail: string): FifoDecision => ({ kind: 'lost', reason, detail });
  if (sequence < start) return lost('beforeStart', `number ${sequence} is below ${start}, where this consumer started`);
  if (skipped.includes(sequence)) return lost('skipped', `number ${sequence} was passed over without its message`);
  const done = recent.find(({ seq }) => seq === sequence);
  const [oldest] = recent;
  if (key === '' || !oldest || done?.key === key) return { kind: 'old' };
  if (!done && (originMs === undefined || originMs <= oldest.originMs)) return { kind: 'old' };
  return lost('sequenceReused', `number ${sequence} is done, and not by this message`);
}

function decideOldEpoch({ epoch, prevEpoch, prevLast }: Cursor, arrival: Arrival): FifoDecision {
  const isDone = arrival.isTombstone || (arrival.epoch === prevEpoch && arrival.sequence <= prevLast);
  if (isDone) return { kind: 'old' };
  return {
    kind: 'lost',
    reason: 'oldEpoch',
    detail: `number ${arrival.sequence} is of epoch ${arrival.epoch}, and epoch ${epoch} has begun`,
  };
}

/**
 * What becomes of a cursor when a message of a newer epoch comes: it stands still until an operator has looked, or it follows.
 * @returns `undefined` while the stream is held, or stands still already: the message waits in the park
 */
export function decideNewEpoch(
  current: Stored<Cursor>,
  { epoch, sequence }: Pick<Arrival, 'epoch' | 'sequence'>,
  rules: { readonly writeId: string; readonly follows: boolean; readonly startAt: StartAt; readonly nowMs: number },
): Cursor | undefined {
  const cursor = cursorOf(current.record, 'of the stream');
  if (heldMs(current) > 0 || cursor.blocked) return undefined;
  if (rules.follows) return inEpoch(cursor, rules.writeId, epoch, rules.startAt === 'firstSeen' ? sequence : 1);
  return heldByEpoch(cursor, rules.writeId, { epoch, seq: sequence, sinceMs: rules.nowMs });
}

/** Whether a number that waits has been given to two messages; a tombstone ends with its number, whoever has it. */
export const isReused = (waiting: Arrival, { key, isTombstone }: Arrival): boolean =>
  !isTombstone && waiting.key !== '' && key !== '' && waiting.key !== key;

/** When an early message that is given back is worth another look: the further ahead, the later; at most a second. */
export const earlyRetryMs = (delta: number): number => Math.min(100 * (delta - 1), 1_000);
