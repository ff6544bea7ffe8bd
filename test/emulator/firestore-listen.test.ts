import { afterAll, describe, expect, test, vi } from 'vitest';
import { changesOf, documentSnapshots, idsOf, querySnapshots } from './firestore-snapshots.ts';
import { embeddedFirestore, firestoreTargets, withFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
afterAll(() => emulator.stop());

for (const target of firestoreTargets(emulator)) {
  describe.concurrent(`Firestore listeners: ${target.name}`, () => {
    test(
      'a document that is not there yet is seen absent, created, changed and deleted',
      withFirestore(target, async (db) => {
        const document = db.doc('c/a');
        using snapshots = documentSnapshots(document);
        expect((await snapshots.next()).exists).toBe(false);
        const { writeTime } = await document.create({ n: 1 });
        const created = await snapshots.next();
        expect([created.data(), created.createTime, created.updateTime]).toEqual([{ n: 1 }, writeTime, writeTime]);
        await document.update({ n: 2 });
        expect((await snapshots.next()).data()).toEqual({ n: 2 });
        await document.delete();
        expect((await snapshots.next()).exists).toBe(false);
      }),
    );

    test(
      'a query tells what was added, modified and removed, whether the document was deleted or no longer matches',
      withFirestore(target, async (db) => {
        const of = db.collection('c');
        await Promise.all([of.doc('a').set({ n: 1 }), of.doc('b').set({ n: 2 }), of.doc('far').set({ n: 9 })]);
        using snapshots = querySnapshots(of.where('n', '<', 5).orderBy('n'));
        expect(changesOf(await snapshots.next())).toEqual(['added a 1', 'added b 2']);
        await of.doc('c').set({ n: 3 });
        expect(changesOf(await snapshots.next())).toEqual(['added c 3']);
        await of.doc('a').update({ n: 4 });
        expect(changesOf(await snapshots.next())).toEqual(['modified a 4']);
        await of.doc('b').update({ n: 7 });
        expect(changesOf(await snapshots.next())).toEqual(['removed b 2']);
        await of.doc('far').set({ n: 10 });
        await of.doc('c').delete();
        expect(changesOf(await snapshots.next())).toEqual(['removed c 3']);
        await of.doc('b').update({ n: 0 });
        const last = await snapshots.next();
        expect(changesOf(last)).toEqual(['added b 0']);
        expect(idsOf(last)).toEqual(['b', 'a']);
      }),
    );

    test(
      'with an order and a limit the document that falls out is removed and the one that moves in is added',
      withFirestore(target, async (db) => {
        const of = db.collection('c');
        await Promise.all([of.doc('a').set({ n: 1 }), of.doc('b').set({ n: 2 }), of.doc('c').set({ n: 3 })]);
        using snapshots = querySnapshots(of.orderBy('n').limit(2));
        expect(idsOf(await snapshots.next())).toEqual(['a', 'b']);
        await of.doc('first').set({ n: 0 });
        expect(changesOf(await snapshots.next())).toEqual(['removed b 2', 'added first 0']);
        await of.doc('a').delete();
        expect(changesOf(await snapshots.next())).toEqual(['removed a 1', 'added b 2']);
        await of.doc('first').update({ n: 9 });
        const last = await snapshots.next();
        expect(changesOf(last)).toEqual(['removed first 0', 'added c 3']);
        expect(idsOf(last)).toEqual(['b', 'c']);
      }),
    );

    test(
      'limitToLast, a collection group and a selection of fields are listened to as they are read',
      withFirestore(target, async (db) => {
        await Promise.all([1, 2, 3].map((n) => db.doc(`above/${n}/c/${n}`).set({ n, more: true })));
        using last = querySnapshots(db.collectionGroup('c').orderBy('n').limitToLast(2));
        expect(idsOf(await last.next())).toEqual(['2', '3']);
        using selected = querySnapshots(db.collection('above/1/c').select('n'));
        expect((await selected.next()).docs[0]?.get('n')).toBe(1);
        await db.doc('above/1/c/1').update({ n: 5 });
        expect(idsOf(await last.next())).toEqual(['3', '1']);
        expect(changesOf(await selected.next())).toEqual(['modified 1 5']);
      }),
    );

    test(
      'a listener sees each of the concurrent transactions whole',
      withFirestore(target, async (db) => {
        const [left, right] = [db.doc('c/left'), db.doc('c/right')];
        await db.batch().set(left, { n: 100 }).set(right, { n: 0 }).commit();
        using snapshots = querySnapshots(db.collection('c'));
        const moved = Promise.all(
          Array.from({ length: 4 }, () =>
            db.runTransaction(
              async (transaction) => {
                const [from, to] = await transaction.getAll(left, right);
                transaction.update(left, { n: from?.get('n') - 1 }).update(right, { n: to?.get('n') + 1 });
              },
              { maxAttempts: 20 },
            ),
          ),
        );
        const seen = await snapshots.until(({ docs }) => docs.some((doc) => doc.id === 'right' && doc.get('n') === 4));
        expect(new Set(seen.map(({ docs }) => docs.reduce((sum, doc) => sum + doc.get('n'), 0)))).toEqual(new Set([100]));
        await moved;
        if (target.name === 'embedded') expect(seen.length).toBe(5);
      }),
    );
  });
}

describe('Firestore listeners: embedded only', () => {
  test(
    'a stream that was closed is opened again and misses nothing',
    withFirestore(emulator.target, async (db, projectId) => {
      const of = db.collection('c');
      await Promise.all([of.doc('a').set({ n: 1 }), of.doc('b').set({ n: 2 }), of.doc('same').set({ n: 0 })]);
      using snapshots = querySnapshots(of);
      await snapshots.next();
      const remove = emulator.faults.add({ kind: 'close-stream', rpc: 'Firestore.Listen', resource: projectId, times: 1 });
      await of.doc('new').set({ n: 3 });
      await db.batch().delete(of.doc('a')).update(of.doc('b'), { n: 9 }).commit();
      const seen = await snapshots.until(({ docs }) => docs.some((doc) => doc.get('n') === 9));
      expect(emulator.faults.counts()['close-stream']).toBe(1);
      expect(seen.flatMap(changesOf).sort()).toEqual(['added new 3', 'modified b 9', 'removed a 1']);
      remove();
    }),
  );

  test(
    'a listener that could not be opened is opened at the next try',
    withFirestore(emulator.target, async (db, projectId) => {
      emulator.faults.add({ kind: 'fail-before', rpc: 'Firestore.Listen', resource: projectId, times: 1 });
      using snapshots = documentSnapshots(db.doc('c/a'));
      expect((await snapshots.next()).exists).toBe(false);
    }),
  );

  test(
    'a listener that is stopped ends its target',
    withFirestore(emulator.target, async (db, projectId) => {
      const noneOpen = () => vi.waitFor(() => expect(emulator.openListens()).toEqual([]));
      await noneOpen();
      using snapshots = documentSnapshots(db.doc('c/a'));
      await snapshots.next();
      expect(emulator.openListens()).toEqual([`projects/${projectId}/databases/(default)/documents/c/a`]);
      snapshots.stop();
      await noneOpen();
    }),
  );

  test(
    'after a reset a listener sees everything gone, and goes on',
    withFirestore(emulator.target, async (db) => {
      await db.doc('c/a').set({ n: 1 });
      using snapshots = querySnapshots(db.collection('c'));
      await snapshots.next();
      emulator.reset();
      expect(changesOf(await snapshots.next())).toEqual(['removed a 1']);
      await db.doc('c/b').set({ n: 2 });
      expect(changesOf(await snapshots.next())).toEqual(['added b 2']);
    }),
  );
});
