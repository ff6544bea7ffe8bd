import type { Transaction } from '@google-cloud/firestore';
import type { DedupRecord } from '../../../src/shared/dedup/decide.ts';
import type { InboxStore } from '../../../src/shared/dedup/inbox.ts';
import type { Clock, RecordStore, Stored, System } from '../../../src/shared/ports.ts';

/** What a control does without. */
export type Protection =
  | 'the claim'
  | 'the ack after the handler'
  | 'done at the end alone'
  | 'the clock of the store'
  | 'the version at the end'
  | 'the marker of the inbox';

type Store = RecordStore<DedupRecord>;

/** A store without one protection of the protocol; as it is where the protection is no matter of the store. */
export function unprotected(store: Store, without: Protection | 'nothing', clock: Clock): Store {
  switch (without) {
    case 'done at the end alone':
      return {
        ...store,
        put: (key, record, expected, keepMs) => store.put(key, { ...record, state: 'done' }, expected, keepMs),
      };
    case 'the clock of the store': {
      const byOwnClock = (stored: Stored<DedupRecord> | undefined) => stored && { ...stored, nowMs: clock.nowMs() };
      return {
        get: async (key) => byOwnClock(await store.get(key)),
        put: async (key, record, expected, keepMs) => {
          const result = await store.put(key, record, expected, keepMs);
          return 'conflict' in result ? { conflict: byOwnClock(result.conflict) } : result;
        },
      };
    }
    case 'the version at the end':
      return {
        ...store,
        put: async (key, record, expected, keepMs) => {
          const found = record.state === 'done' ? await store.get(key) : undefined;
          return store.put(key, record, found?.version ?? expected, keepMs);
        },
      };
    default:
      return store;
  }
}

/** Without the marker each delivery writes one that no other delivery reads. */
export const unprotectedInbox = (
  store: InboxStore<Transaction>,
  without: Protection | 'nothing',
  { randomId }: System,
): InboxStore<Transaction> => ({
  ...store,
  transact: (key, work, keepMs) => store.transact(without === 'the marker of the inbox' ? `${key}~${randomId()}` : key, work, keepMs),
});
