import { type DocumentSnapshot, FieldValue, type Firestore, Timestamp } from '@google-cloud/firestore';
import { attribute } from '../message.ts';
import { encodeName, hash } from '../names.ts';
import type { Counter, CounterState, Entry } from '../outbox/decide.ts';
import type { PendingEntry, StreamStore } from '../outbox/store.ts';
import type { Clock } from '../ports.ts';

import { fieldsOf, instantOf, storedOf, versionOf } from './firestore.ts';
import { guarded, shardOf, unlessConflict } from './firestore-answers.ts';

export { firestoreFifoStore } from './firestore-fifo.ts';

/** Entries read at once to learn which streams are due. */
const duePage = 300;

/** Counters in `ptk-streams`, entries in `ptk-outbox`; every name with the prefix given. */
export function firestoreStreamStore(db: Firestore, clock: Pick<Clock, 'nowMs'>, prefix = ''): StreamStore {
  const outbox = db.collection(`${prefix}ptk-outbox`);
  const counterOf = (stream: string) => db.collection(`${prefix}ptk-streams`).doc(encodeName(stream, attribute.stream));
  const entryOf = (stream: string, key: string) => outbox.doc(`${hash(stream)}~${hash(key)}`);

  return {
    look: (stream, group) =>
      guarded(async () => {
        const [counter, ...entries] = await db.getAll(counterOf(stream), ...group.map(({ key }) => entryOf(stream, key)));
        return { state: stateOf(counter), entries: entries.map((snapshot) => storedOf<Entry>(snapshot)?.record) };
      }),

    async append(stream, { counter, expected, entries }) {
      const batch = db.batch();
      if (expected === 'absent') batch.create(counterOf(stream), { ...counter });
      else batch.update(counterOf(stream), { ...counter }, { lastUpdateTime: instantOf(expected) });
      for (const entry of entries) {
        batch.create(entryOf(stream, entry.key), { ...fieldsOf(entry, clock, 'forever'), shard: shardOf(stream) });
      }
      let version = '';
      const applied = await unlessConflict(async () => {
        const [first] = await batch.commit();
        if (first) version = versionOf(first.writeTime);
      });
      return applied ? { counter, version } : undefined;
    },

    async markPublished(entries, messageIds, keepMs) {
      if (entries.length === 0) return;
      const expireAt = Timestamp.fromMillis(clock.nowMs() + keepMs);
      const batch = db.batch();
      entries.forEach(({ stream, key }, index) => {
        const published = {
          state: 'published',
          messageId: messageIds[index] ?? null,
          message: null,
          nextAttemptAt: FieldValue.delete(),
          expireAt,
        };
        batch.update(entryOf(stream, key), published);
      });
      await unlessConflict(() => batch.commit());
    },

    dueStreams: (nowMs) =>
      guarded(async () => {
        const due = outbox
          .where('state', '==', 'pending')
          .where('nextAttemptAt', '<=', Timestamp.fromMillis(nowMs))
          .orderBy('nextAttemptAt')
          .select('stream', 'nextAttemptAt')
          .limit(duePage);
        const streams = new Set<string>();
        let page = await due.get();
        for (;;) {
          for (const document of page.docs) streams.add(String(document.get('stream')));
          const last = page.docs.at(-1);
          if (!last || page.size < duePage) return [...streams];
          page = await due.startAfter(last).get();
        }
      }),

    pending: (stream, limit) =>
      guarded(async () => {
        const found = await outbox
          .where('stream', '==', stream)
          .where('state', '==', 'pending')
          .orderBy('epoch')
          .orderBy('seq')
          .limit(limit)
          .get();
        return found.docs.flatMap((document): PendingEntry[] => {
          const stored = storedOf<Entry>(document);
          return stored ? [{ entry: stored.record, version: stored.version }] : [];
        });
      }),

    async note({ entry, version }, change) {
      const { nextAttemptAtMs, ...fields } = change;
      const when = nextAttemptAtMs === undefined ? {} : { nextAttemptAt: Timestamp.fromMillis(nextAttemptAtMs) };
      await unlessConflict(() => entryOf(entry.stream, entry.key).update({ ...fields, ...when }, { lastUpdateTime: instantOf(version) }));
    },
  };
}

function stateOf(snapshot: DocumentSnapshot | undefined): CounterState {
  const stored = snapshot && storedOf<Counter>(snapshot);
  if (stored) return { counter: stored.record, version: stored.version };
  return { absentAtMs: snapshot?.readTime.toMillis() ?? 0 };
}
