import type { DocumentReference, DocumentSnapshot, Query, QuerySnapshot } from '@google-cloud/firestore';

/** The snapshots of a listener, one after the other; it stops at the end of the block. */
export type Snapshots<Snapshot> = Disposable & {
  next(): Promise<Snapshot>;
  /** Goes on until one fits; returns it with those before it. */
  until(fits: (snapshot: Snapshot) => boolean): Promise<Snapshot[]>;
  stop(): void;
};

export const documentSnapshots = (document: DocumentReference): Snapshots<DocumentSnapshot> =>
  collect((onNext, onError) => document.onSnapshot(onNext, onError));

export const querySnapshots = (query: Query): Snapshots<QuerySnapshot> => collect((onNext, onError) => query.onSnapshot(onNext, onError));

function collect<Snapshot>(
  listen: (onNext: (snapshot: Snapshot) => void, onError: (error: Error) => void) => () => void,
): Snapshots<Snapshot> {
  let came = Promise.withResolvers<void>();
  const waiting: Snapshot[] = [];
  const stop = listen(
    (snapshot) => {
      waiting.push(snapshot);
      came.resolve();
    },
    (error) => came.reject(error),
  );
  const next = async (): Promise<Snapshot> => {
    for (;;) {
      const snapshot = waiting.shift();
      if (snapshot) return snapshot;
      came = Promise.withResolvers<void>();
      await came.promise;
    }
  };
  return {
    next,
    async until(fits) {
      const seen: Snapshot[] = [];
      for (;;) {
        const snapshot = await next();
        seen.push(snapshot);
        if (fits(snapshot)) return seen;
      }
    },
    stop,
    [Symbol.dispose]: stop,
  };
}

/** What a snapshot tells of each change: its type, the document, and a number of it. */
export function changesOf(snapshot: QuerySnapshot): string[] {
  return snapshot.docChanges().map(({ type, doc }) => `${type} ${doc.id} ${doc.get('n')}`);
}

export function idsOf(snapshot: QuerySnapshot): string[] {
  return snapshot.docs.map(({ id }) => id);
}
