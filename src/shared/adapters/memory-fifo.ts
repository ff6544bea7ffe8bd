import type { Cursor } from '../fifo/cursor.ts';
import { cursorKeyOf, type FifoStore, type Parked, type Place } from '../fifo/store.ts';
import type { Message } from '../message.ts';
import type { Clock, RecordStore, Stored } from '../ports.ts';
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
      const there = park.get(keyOf(parked));
      if (!there) park.set(keyOf(parked), parked);
      return there?.message;
    },
    async unpark(place) {
      park.delete(keyOf(place));
    },
    async look(cursorKey, place) {
      const cursor = await cursors.get(cursorKey);
      return { cursor, parked: park.get(keyOf(place))?.message };
    },
    async ahead(place, limit) {
      const messages: Message[] = [];
      for (let { seq } = place; messages.length < limit; seq++) {
        const parked = park.get(keyOf({ ...place, seq }));
        if (!parked) break;
        messages.push(parked.message);
      }
      return messages;
    },
    beside: (change) => ({
      get: cursors.get,
      async put(...args) {
        const result = await cursors.put(...args);
        if ('version' in result) {
          for (const place of change.unpark) park.delete(keyOf(place));
          if (change.park) park.set(keyOf(change.park), change.park);
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
    waiting: async (consumer, stream) =>
      [...park.values()].filter((parked) => parked.consumer === consumer && parked.stream === stream).length,
    async blockedStreams(consumer) {
      const names = new Set([...park.values()].filter((parked) => parked.consumer === consumer).map(({ stream }) => stream));
      const found: { stream: string; cursor: Stored<Cursor> }[] = [];
      for (const stream of names) {
        const cursor = await cursors.get(cursorKeyOf(consumer, stream));
        if (cursor?.record.blocked) found.push({ stream, cursor });
      }
      return found;
    },
  };
}
