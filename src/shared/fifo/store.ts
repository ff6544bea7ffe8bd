import { attribute, type Message } from '../message.ts';
import { documentId, encodeName } from '../names.ts';
import type { RecordStore, Stored } from '../ports.ts';
import type { Cursor } from './cursor.ts';

/** A number of one consumer's stream. */
export type Place = { readonly consumer: string; readonly stream: string; readonly epoch: number; readonly seq: number };

/**
 * The id of a consumer's cursor in a stream (**wire**).
 * @throws MALFORMED_MESSAGE for a name that is empty, no well-formed text or too long
 */
export const cursorKeyOf = (consumer: string, stream: string): string =>
  documentId(encodeName(consumer, 'the consumer'), encodeName(stream, attribute.stream));

export type ParkReason = 'early' | 'busy' | 'blocked' | 'epoch' | 'start';

/** A message that waits for its turn, acked (**wire**). */
export type Parked = Place & {
  readonly reason: ParkReason;
  readonly parkedAtMs: number;
  /** When a sweep looks whether it was forgotten. */
  readonly dueAtMs: number;
  readonly message: Message;
};

/** Cursors, and beside them the messages that wait for their turn. */
export interface FifoStore extends RecordStore<Cursor> {
  /**
   * Stores a message until its turn; one that is there stays as it is.
   * @returns what was there
   * @throws MESSAGE_TOO_LARGE, STORE_UNAVAILABLE
   */
  park(parked: Parked): Promise<Message | undefined>;
  /** Removes a message whose number is done; one that is not there is fine. */
  unpark(place: Place): Promise<void>;
  /** One snapshot: the cursor, and what is parked at the place. */
  look(cursorKey: string, place: Place): Promise<{ readonly cursor: Stored<Cursor> | undefined; readonly parked: Message | undefined }>;
  /** What is parked from a place on, without a gap, in order of number; of one epoch, at most `limit`. */
  ahead(place: Place, limit: number): Promise<readonly Message[]>;
  /** The cursors, where each write takes messages out of the park, or puts one in, in the same commit. */
  beside(change: { readonly unpark: readonly Place[]; readonly park?: Parked }): RecordStore<Cursor>;
  /** Places that a sweep is to look at, the longest due first; at most some hundreds. */
  due(consumer: string, nowMs: number): Promise<readonly Place[]>;
  /** The lowest parked number of a stream. */
  lowest(consumer: string, stream: string): Promise<(Place & Pick<Parked, 'parkedAtMs'>) | undefined>;
  /** Looked at: due again later. */
  postpone(places: readonly Place[], dueAtMs: number): Promise<void>;
  /** How many messages of a stream are parked. */
  waiting(consumer: string, stream: string): Promise<number>;
  /** The streams of a consumer that stand still, or go to a lane. */
  blockedStreams(consumer: string): Promise<readonly { readonly stream: string; readonly cursor: Stored<Cursor> }[]>;
}

/** @param sweepAfterMs from now, when a sweep looks whether it was forgotten */
export const parkedFor = (place: Place, message: Message, reason: ParkReason, nowMs: number, sweepAfterMs: number): Parked => ({
  ...place,
  message,
  reason,
  parkedAtMs: nowMs,
  dueAtMs: nowMs + sweepAfterMs,
});
