import type { Cursor } from '../fifo/decide.ts';
import type { FifoStore, Parked, Place } from '../fifo/store.ts';
import type { Clock, RecordStore } from '../ports.ts';
import { memoryRecordStore } from './memory.ts';

/** As in Firestore. */
const duePlaces = 300;

/** Cursors and parked messages of this process alone, gone with it: for tests. */
export function memoryFifoStore(
  clock: Pick<Clock, 'nowMs'>,
  cursors: RecordStore<Cursor> = memoryRecordStore(clock),
  park = new Map<string, Parked>(),
): FifoStore {
  const keyOf = ({ consumer, stream, epoch, seq }: Place) => JSON.stringify([consumer, stream, epoch, seq]);
  const sorted = (by: (parked: Parked) => number) => [...park.values()].sort((a, b) => by(a) - by(b));
  return {
    get: cursors.get,
    put: cursors.put,
    async park(parked) {
      if (!park.has(keyOf(parked))) park.set(keyOf(parked), parked);
    },
    async unpark(place) {
      park.delete(keyOf(place));
    },
    async look(cursorKey, place) {
      const cursor = await cursors.get(cursorKey);
      return { cursor, parked: park.get(keyOf(place))?.message };
    },
    beside: (change) => ({
      get: cursors.get,
      async put(...args) {
        const result = await cursors.put(...args);
        if ('version' in result) {
          if ('park' in change) park.set(keyOf(change.park), change.park);
          else park.delete(keyOf(change.unpark));
        }
        return result;
      },
    }),
    due: async (consumer, nowMs) =>
      sorted(({ dueAtMs }) => dueAtMs)
        .filter((parked) => parked.consumer === consumer && parked.dueAtMs <= nowMs)
        .slice(0, duePlaces),
    lowest: async (consumer, stream) =>
      sorted(({ seq }) => seq)
        .sort((a, b) => a.epoch - b.epoch)
        .find((parked) => parked.consumer === consumer && parked.stream === stream),
    async postpone(places, dueAtMs) {
      for (const place of places) {
        const parked = park.get(keyOf(place));
        if (parked) park.set(keyOf(place), { ...parked, dueAtMs });
      }
    },
  };
}
