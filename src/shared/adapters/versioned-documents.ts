import { type DocumentReference, type Firestore, Timestamp } from '@google-cloud/firestore';
import type { VersionedDocuments } from '../dedup/versioned.ts';
import { malformed } from '../errors.ts';
import { instantOf, isConflict, refusal, storeError, versionOf } from './firestore-answers.ts';

/**
 * The user's own documents in a collection, under the ids that they have there. The client is the caller's.
 *
 * Exempt the field `processedEvents` from the automatic indexes: each of its entries counts as several of the 40,000 index entries
 * that a document may have.
 */
export function firestoreVersionedDocuments<D extends object>(db: Firestore, collection: string): VersionedDocuments<D> {
  /** Of the client's own copy of the package; it takes no other as a precondition. */
  let Instant = Timestamp;
  const documentOf = (id: string): DocumentReference => {
    // A slash would reach into a collection below, and the others are reserved.
    if (id.includes('/') || /^(\.\.?|__.*__)$/s.test(id))
      throw malformed(`${JSON.stringify(id.slice(0, 100))} is no Firestore document id`);
    return db.collection(collection).doc(id);
  };
  return {
    async load(id) {
      const ref = documentOf(id);
      try {
        const snapshot = await ref.get();
        const data = snapshot.data();
        if (!data || !snapshot.updateTime) return undefined;
        Instant = snapshot.updateTime.constructor as typeof Timestamp;
        return { data: data as D, version: versionOf(snapshot.updateTime) };
      } catch (error) {
        throw refusal(error) ?? storeError(error);
      }
    },
    async save(id, data, expected) {
      const ref = documentOf(id);
      const batch = db.batch();
      if (expected === 'absent') batch.create(ref, data);
      // A set takes no precondition and an update keeps other fields: so one write that only asks, and one that replaces, as one commit.
      else batch.update(ref, { processedEvents: null }, { lastUpdateTime: instantOf(expected, Instant) }).set(ref, data);
      try {
        await batch.commit();
        return 'saved';
      } catch (error) {
        if (isConflict(error)) return 'conflict';
        throw refusal(error) ?? storeError(error);
      }
    },
  };
}
