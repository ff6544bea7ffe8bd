import type { Transaction } from '@google-cloud/firestore';
import { afterAll, describe, expect, test } from 'vitest';
import { statement } from '../support/targets.ts';
import { codeOf, embeddedFirestore, firestoreTargets, withFirestore, withRawFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
afterAll(() => emulator.stop());

/** Lets nobody pass before `parties` have come. */
function barrier(parties: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let come = 0;
  return () => {
    come += 1;
    if (come === parties) resolve();
    return promise;
  };
}

for (const target of firestoreTargets(emulator)) {
  describe(`Firestore transactions: ${target.name}`, () => {
    statement(
      target,
      68,
      'begins with its first read, be it of documents, a query or an aggregation; without a read it only commits',
      withFirestore(target, async (db) => {
        await db.doc('c/a').set({ n: 1 });
        await db.runTransaction(async (transaction) => {
          const [first] = await transaction.getAll(db.doc('c/a'), db.doc('c/none'));
          expect((await transaction.get(db.collection('c'))).size).toBe(1);
          transaction.update(db.doc('c/a'), { n: first?.get('n') + 1 });
        });
        await db.runTransaction(async (transaction) => {
          const { docs } = await transaction.get(db.collection('c').where('n', '==', 2));
          for (const { ref } of docs) transaction.update(ref, { n: 3 });
        });
        await db.runTransaction(async (transaction) => {
          const count = (await transaction.get(db.collection('c').count())).data().count;
          transaction.update(db.doc('c/a'), { count });
        });
        await db.runTransaction(async (transaction) => {
          transaction.create(db.doc('c/b'), { n: 1 });
        });
        expect((await db.collection('c').get()).docs.map((doc) => doc.data())).toEqual([{ n: 3, count: 1 }, { n: 1 }]);
      }),
    );

    statement(
      target,
      68,
      'a read-only one sees the same documents and rows to its end, whatever is written meanwhile',
      withFirestore(target, async (db) => {
        await db.doc('c/changed').set({ n: 1 });
        await db.doc('c/deleted').set({ n: 1 });
        const rowsOf = async (transaction: Transaction) =>
          (await transaction.get(db.collection('c'))).docs.map((doc) => [doc.id, doc.data()]);
        const atStart = [
          ['changed', { n: 1 }],
          ['deleted', { n: 1 }],
        ];
        await db.runTransaction(
          async (transaction) => {
            expect((await transaction.get(db.doc('c/changed'))).get('n')).toBe(1);
            for (const n of [2, 3]) await db.doc('c/changed').set({ n });
            await db.doc('c/deleted').delete();
            await db.doc('c/created').set({ n: 1 });
            expect(await rowsOf(transaction)).toEqual(atStart);
            expect((await transaction.get(db.doc('c/changed'))).data()).toEqual({ n: 1 });
            expect((await transaction.get(db.doc('c/deleted'))).exists).toBe(true);
            expect((await transaction.get(db.doc('c/created'))).exists).toBe(false);
          },
          { readOnly: true },
        );
        expect((await db.collection('c').get()).docs.map(({ id }) => id)).toEqual(['changed', 'created']);
      }),
    );

    statement(
      target,
      69,
      'two that both read a document before either writes it both succeed, in three runs',
      withFirestore(target, async (db) => {
        await db.doc('c/a').set({});
        const startedAtMs = performance.now();
        const bothHaveRead = barrier(2);
        let runs = 0;
        const add = (field: string) =>
          db.runTransaction(async (transaction) => {
            runs += 1;
            const doc = await transaction.get(db.doc('c/a'));
            await bothHaveRead();
            transaction.set(db.doc('c/a'), { ...doc.data(), [field]: true });
          });
        await Promise.all([add('one'), add('other')]);
        expect((await db.doc('c/a').get()).data()).toEqual({ one: true, other: true });
        expect(runs).toBe(3);
        expect(performance.now() - startedAtMs).toBeLessThan(2_000);
      }),
      { differs: 'needs three runs too, but lets the commits wait for each other until a lock times out after more than 2 s' },
    );

    statement(
      target,
      70,
      '50 that add to one counter at once lose nothing, and none fails',
      withFirestore(target, async (db) => {
        const counter = db.doc('c/counter');
        const increment = async (transaction: Transaction) => {
          const n = (await transaction.get(counter)).get('n') ?? 0;
          transaction.set(counter, { n: n + 1 });
        };
        await Promise.all(Array.from({ length: 50 }, () => db.runTransaction(increment)));
        expect((await counter.get()).get('n')).toBe(50);
      }),
      { differs: 'lets the commits wait for each other until their locks time out, so that some fail after five attempts' },
    );

    statement(
      target,
      72,
      'a read outside is not held up by what a transaction has read',
      withFirestore(target, async (db) => {
        await db.doc('c/a').set({ n: 1 });
        await db.runTransaction(async (transaction) => {
          await transaction.get(db.doc('c/a'));
          await transaction.get(db.collection('c'));
          expect((await db.doc('c/a').get()).get('n')).toBe(1);
          expect((await db.collection('c').get()).size).toBe(1);
          transaction.update(db.doc('c/a'), { n: 2 });
        });
        expect((await db.doc('c/a').get()).get('n')).toBe(2);
      }),
    );

    statement(
      target,
      73,
      'write skew is prevented: of two that each take one off after having counted two, only one does',
      withFirestore(target, async (db) => {
        await db.doc('duty/ann').set({ on: true });
        await db.doc('duty/bob').set({ on: true });
        const bothHaveRead = barrier(2);
        const leave = (who: string) =>
          db.runTransaction(async (transaction) => {
            const duty = await transaction.getAll(db.doc('duty/ann'), db.doc('duty/bob'));
            await bothHaveRead();
            if (duty.filter((doc) => doc.get('on')).length === 2) transaction.update(db.doc(`duty/${who}`), { on: false });
          });
        await Promise.all([leave('ann'), leave('bob')]);
        expect((await db.collection('duty').where('on', '==', true).get()).size).toBe(1);
      }),
    );

    statement(
      target,
      73,
      'phantoms are prevented: of two that insert after having found nothing, only one does',
      withFirestore(target, async (db) => {
        const bothHaveRead = barrier(2);
        const claim = (id: string) =>
          db.runTransaction(async (transaction) => {
            const open = await transaction.get(db.collection('claims').where('open', '==', true).limit(1));
            await bothHaveRead();
            if (open.empty) transaction.create(db.doc(`claims/${id}`), { open: true });
          });
        await Promise.all([claim('a'), claim('b')]);
        expect((await db.collection('claims').get()).size).toBe(1);
      }),
    );

    statement(
      target,
      74,
      'an error of the user releases what was read at once, and the transaction leaves nothing',
      withFirestore(target, async (db) => {
        await db.doc('c/a').set({ n: 1 });
        const mistake = new Error('not today');
        const failed = db.runTransaction(async (transaction) => {
          await transaction.get(db.doc('c/a'));
          transaction.update(db.doc('c/a'), { n: 2 });
          throw mistake;
        });
        await expect(failed).rejects.toBe(mistake);
        const startedAtMs = performance.now();
        await db.doc('c/a').update({ m: 1 });
        expect(performance.now() - startedAtMs).toBeLessThan(1_000);
        expect((await db.doc('c/a').get()).data()).toEqual({ n: 1, m: 1 });
      }),
    );

    statement(
      target,
      74,
      'a rollback of an unknown transaction is OK',
      withRawFirestore(target, async (raw, database) => {
        expect(await codeOf(raw('Rollback', { database, transaction: Buffer.from('never begun') }))).toBe('OK');
      }),
      { differs: 'answers INVALID_ARGUMENT, which the client ignores' },
    );

    test(
      'of 16 that find nothing and create it, one does, and the others end soon without having created',
      withFirestore(target, async (db) => {
        const startedAtMs = performance.now();
        const claim = (by: number) =>
          db.runTransaction(async (transaction) => {
            const { exists } = await transaction.get(db.doc('c/a'));
            if (exists) return 'taken';
            transaction.create(db.doc('c/a'), { by });
            return by;
          });
        const ends = await Promise.all(Array.from({ length: 16 }, (_, by) => claim(by)));
        expect(ends.filter((end) => end !== 'taken')).toEqual([(await db.doc('c/a').get()).get('by')]);
        if (target.name === 'embedded') expect(performance.now() - startedAtMs).toBeLessThan(4_000);
      }),
    );
  });
}
