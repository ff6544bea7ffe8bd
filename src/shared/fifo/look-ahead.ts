import type { Message } from '../message.ts';
import type { FifoStore, Place } from './store.ts';

/** What is parked next, read ahead while handlers run. */
export type LookAhead = {
  /** False once nothing followed. */
  isOpen(): boolean;
  /** Begins to read, where nothing is known of the place. */
  prefetch(place: Place): void;
  next(place: Place): Promise<Message | undefined>;
};

const messagesAtOnce = 50;

export function createLookAhead(
  store: FifoStore,
  bounded: <T>(what: string, call: Promise<T>) => Promise<T>,
  mayBeParked: boolean,
): LookAhead {
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
  return {
    isOpen: () => isOpen,
    prefetch(place) {
      if (isOpen && !known[place.seq - from]) void begin(place);
    },
    async next(place) {
      if (!isOpen) return undefined;
      const message = known[place.seq - from];
      if (message) return message;
      known = await begin(place);
      read = undefined;
      isOpen = known.length > 0;
      return known[0];
    },
  };
}
