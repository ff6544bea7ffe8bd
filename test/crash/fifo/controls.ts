import type { Cursor } from '../../../src/shared/fifo/cursor.ts';
import type { FifoStore } from '../../../src/shared/fifo/store.ts';
import type { RelayLease } from '../../../src/shared/outbox/decide.ts';
import type { StreamStore } from '../../../src/shared/outbox/store.ts';
import type { RecordStore } from '../../../src/shared/ports.ts';

/** What a control does without. */
export type Protection =
  | 'the outbox'
  | 'the lease of the relay'
  | 'the version of the cursor'
  | 'the look behind the head'
  | 'the park in the commit'
  | 'parking';

/** Numbers are given, and nothing remembers what for. */
export const unprotectedStreams = (streams: StreamStore, without: Protection | 'nothing'): StreamStore =>
  without === 'the outbox'
    ? { ...streams, append: (stream, numbering) => streams.append(stream, { ...numbering, entries: [] }), markPublished: async () => {} }
    : streams;

/** Every relay gets every stream. */
export const unprotectedLeases = (leases: RecordStore<RelayLease>, without: Protection | 'nothing'): RecordStore<RelayLease> =>
  without === 'the lease of the relay' ? { get: async () => undefined, put: async () => ({ version: 'any' }) } : leases;

export function unprotectedFifo(store: FifoStore, without: Protection | 'nothing'): FifoStore {
  switch (without) {
    case 'the version of the cursor': {
      const blind = (cursors: RecordStore<Cursor>): RecordStore<Cursor> => ({
        get: cursors.get,
        async put(key, record, expected, keepMs) {
          const found = expected === 'absent' ? undefined : await cursors.get(key);
          return cursors.put(key, record, found?.version ?? expected, keepMs);
        },
      });
      return { ...store, ...blind(store), beside: (change) => blind(store.beside(change)) };
    }
    case 'the look behind the head':
      return { ...store, look: async () => ({ cursor: undefined, parked: undefined }) };
    case 'the park in the commit':
      return {
        ...store,
        beside: (change) => ({
          get: store.get,
          async put(...args) {
            if (change.park) return store.beside(change).put(...args);
            for (const place of change.unpark) await store.unpark(place);
            return store.put(...args);
          },
        }),
      };
    default:
      return store;
  }
}
