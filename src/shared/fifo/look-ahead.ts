import { textOf } from '../errors.ts';
import type { Message } from '../message.ts';
import type { Telemetry } from '../metrics.ts';
import type { Hands, Item, Standing } from './hands.ts';
import type { FifoStore, Place } from './store.ts';

/** What follows a number, in hand or in the park, which is read ahead while handlers run. */
export type LookAhead = {
  /** Begins to read the park, where nothing is known of the place. */
  prefetch(place: Place): void;
  /** `undefined` where nothing is known to follow, and where a message of the park would have nobody left to stand for it. */
  next(place: Place, standing: Standing): Promise<Item | undefined>;
};

export type LookAheadParts = {
  readonly store: FifoStore;
  readonly hands: Hands;
  readonly telemetry: Telemetry;
  readonly bounded: <T>(what: string, call: Promise<T>) => Promise<T>;
};

const messagesAtOnce = 50;

/** @param mayBeParked only then the park is asked, until nothing followed there: a stream that does not wait costs no query */
export function createLookAhead({ store, hands, telemetry, bounded }: LookAheadParts, mayBeParked: boolean): LookAhead {
  let isOpen = mayBeParked;
  let from = 0;
  let read: Promise<readonly Message[]> | undefined;
  let known: readonly Message[] = [];
  const begin = (place: Place): Promise<readonly Message[]> => {
    if (read && from === place.seq) return read;
    from = place.seq;
    known = [];
    read = bounded('ahead', store.ahead(place, messagesAtOnce));
    // Whoever asks for the next one is told of it.
    read.catch(() => {});
    return read;
  };
  const parked = async (place: Place): Promise<Message | undefined> => {
    const message = known[place.seq - from];
    if (message) return message;
    try {
      known = await begin(place);
    } catch (error) {
      telemetry.log.warn({ stream: place.stream, reason: textOf(error) }, 'not looked ahead');
    }
    read = undefined;
    isOpen = known.length > 0;
    return known[0];
  };
  return {
    prefetch(place) {
      if (isOpen && !known[place.seq - from]) void begin(place);
    },
    async next(place, standing) {
      const delivery = hands.take(place);
      if (delivery) return { place, message: delivery.message, delivery };
      if (!isOpen || standing.context.signal.aborted) return undefined;
      const message = await parked(place);
      return message && { place, message, delivery: undefined };
    },
  };
}
