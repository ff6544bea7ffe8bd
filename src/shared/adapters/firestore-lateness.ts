import type { Firestore } from '@google-cloud/firestore';
import { latenessKeepMs, readHistogram } from '../delay/lateness.ts';
import type { LatenessStore } from '../delay/store.ts';
import { documentId, encodeName } from '../names.ts';
import { guarded } from './firestore-answers.ts';

/** Counts in `ptk-lateness`, its name with the prefix given. The client is the caller's: connected, and closed by the caller. */
export function firestoreLatenessStore(db: Firestore, prefix = ''): LatenessStore {
  const collection = db.collection(`${prefix}ptk-lateness`);
  return {
    put: ({ counter, hourAtMs, counts }) =>
      guarded(async () => {
        const hourAt = new Date(hourAtMs);
        const id = documentId(encodeName(counter, 'the counter'), hourAt.toISOString().slice(0, 13));
        // Nobody else writes the document, so what was there is older.
        await collection.doc(id).set({ hourAt, counts, expireAt: new Date(hourAtMs + latenessKeepMs) });
      }),
    since: (fromMs) =>
      guarded(async () => {
        const { docs } = await collection.where('hourAt', '>=', new Date(fromMs)).get();
        return docs.map((document) => readHistogram(document.get('counts')));
      }),
  };
}
