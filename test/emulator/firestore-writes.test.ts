import { FieldPath, FieldValue, Timestamp } from '@google-cloud/firestore';
import { afterAll, describe, expect } from 'vitest';
import { statement } from '../support/targets.ts';
import { codeOf, embeddedFirestore, firestoreTargets, withFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
afterAll(() => emulator.stop());

for (const target of firestoreTargets(emulator)) {
  describe(`Firestore writes: ${target.name}`, () => {
    statement(
      target,
      55,
      'a second create answers ALREADY_EXISTS, and of 100 at once exactly one succeeds',
      withFirestore(target, async (db) => {
        await db.doc('c/a').create({ by: 'first' });
        expect(await codeOf(db.doc('c/a').create({ by: 'second' }))).toBe('ALREADY_EXISTS');
        expect((await db.doc('c/a').get()).data()).toEqual({ by: 'first' });

        const codes = await Promise.all(Array.from({ length: 100 }, (_, by) => codeOf(db.doc('c/raced').create({ by }))));
        expect(codes.filter((code) => code === 'OK')).toHaveLength(1);
        expect(codes.filter((code) => code === 'ALREADY_EXISTS')).toHaveLength(99);
        expect((await db.doc('c/raced').get()).get('by')).toBe(codes.indexOf('OK'));
      }),
    );

    statement(
      target,
      56,
      'a precondition that does not hold refuses the write, and a delete of nothing succeeds',
      withFirestore(target, async (db) => {
        const missing = db.doc('c/missing');
        expect(await codeOf(missing.update({ a: 1 }))).toBe('NOT_FOUND');
        expect(await codeOf(missing.delete({ exists: true }))).toBe('NOT_FOUND');
        expect(await codeOf(missing.delete())).toBe('OK');

        const doc = db.doc('c/a');
        const first = await doc.set({ n: 1 });
        const second = await doc.update({ n: 2 }, { lastUpdateTime: first.writeTime });
        expect(await codeOf(doc.update({ n: 3 }, { lastUpdateTime: first.writeTime }))).toBe('FAILED_PRECONDITION');
        expect(await codeOf(doc.delete({ lastUpdateTime: first.writeTime }))).toBe('FAILED_PRECONDITION');
        expect((await doc.get()).data()).toEqual({ n: 2 });
        expect(await codeOf(doc.delete({ lastUpdateTime: second.writeTime }))).toBe('OK');
        expect((await doc.get()).exists).toBe(false);
      }),
    );

    statement(
      target,
      57,
      'a write that fails leaves no trace of the others of its batch, before or after it',
      withFirestore(target, async (db) => {
        await db.doc('c/there').set({ n: 1 });
        const batch = db.batch();
        batch.set(db.doc('c/before'), { n: 1 });
        batch.delete(db.doc('c/there'));
        batch.update(db.doc('c/missing'), { n: 1 });
        batch.set(db.doc('c/after'), { n: 1 });
        expect(await codeOf(batch.commit())).toBe('NOT_FOUND');
        expect((await db.collection('c').get()).docs.map(({ id }) => id)).toEqual(['there']);
      }),
    );

    statement(
      target,
      57,
      'the writes of a batch see each other in their order',
      withFirestore(target, async (db) => {
        const doc = db.doc('c/a');
        const batch = db.batch();
        batch.create(doc, { n: 1 });
        batch.update(doc, { n: FieldValue.increment(1) });
        batch.delete(doc, { exists: true });
        batch.create(doc, { n: FieldValue.increment(5) });
        await batch.commit();
        expect((await doc.get()).data()).toEqual({ n: 5 });
      }),
    );

    statement(
      target,
      58,
      'set replaces, merge keeps the siblings, a nested update keeps the other leaves, and delete removes',
      withFirestore(target, async (db) => {
        const doc = db.doc('c/a');
        await doc.set({ a: 1, m: { x: 1, y: 2 } });
        await doc.set({ m: { x: 3 } }, { merge: true });
        expect((await doc.get()).data()).toEqual({ a: 1, m: { x: 3, y: 2 } });
        await doc.update({ 'm.y': 4, 'n.deep.er': 5 });
        expect((await doc.get()).data()).toEqual({ a: 1, m: { x: 3, y: 4 }, n: { deep: { er: 5 } } });
        await doc.update({ a: FieldValue.delete(), 'm.x': FieldValue.delete(), 'none.such': FieldValue.delete() });
        expect((await doc.get()).data()).toEqual({ m: { y: 4 }, n: { deep: { er: 5 } } });
        await doc.set({ m: { z: 6 } }, { mergeFields: ['m'] });
        expect((await doc.get()).data()).toEqual({ m: { z: 6 }, n: { deep: { er: 5 } } });
        await doc.set({ only: true });
        expect((await doc.get()).data()).toEqual({ only: true });
      }),
    );

    statement(
      target,
      59,
      'a mask that is there but empty touches no field, and creates the document',
      withFirestore(target, async (db) => {
        await db.doc('c/a').set({ keep: 'me', n: 1 });
        await db.doc('c/a').set({ n: FieldValue.increment(1) }, { merge: true });
        expect((await db.doc('c/a').get()).data()).toEqual({ keep: 'me', n: 2 });
        await db.doc('c/new').set({ n: FieldValue.increment(1) }, { merge: true });
        expect((await db.doc('c/new').get()).data()).toEqual({ n: 1 });
        await db.doc('c/empty').set({}, { merge: true });
        expect((await db.doc('c/empty').get()).data()).toEqual({});
      }),
    );

    statement(
      target,
      60,
      'field names with dots, backticks, backslashes and the names of object methods come back as they were',
      withFirestore(target, async (db) => {
        const doc = db.doc('c/a');
        const awkward = { 'a.b': 1, 'c`d': 2, 'e\\f': 3, '1g': 4, 'h i': { 'j.k': 5, l: 6 }, constructor: 7, é: 8 };
        await doc.set(awkward);
        expect((await doc.get()).data()).toEqual(awkward);
        await doc.update(new FieldPath('a.b'), 10, new FieldPath('c`d'), 20, new FieldPath('e\\f'), 30, new FieldPath('h i', 'j.k'), 50);
        await doc.set({ valueOf: 9 }, { merge: true });
        expect((await doc.get()).data()).toEqual({
          ...awkward,
          'a.b': 10,
          'c`d': 20,
          'e\\f': 30,
          'h i': { 'j.k': 50, l: 6 },
          valueOf: 9,
        });
        const found = await db.collection('c').where(new FieldPath('h i', 'j.k'), '==', 50).get();
        expect(found.size).toBe(1);
        expect((await db.collection('c').orderBy('toString').get()).size).toBe(0);
      }),
    );

    statement(
      target,
      62,
      'the write time is the update time, the create time stays, and a write that changes nothing keeps the update time',
      withFirestore(target, async (db) => {
        const doc = db.doc('c/a');
        const first = await doc.set({ n: 1, keep: true });
        const created = await doc.get();
        expect(created.createTime?.isEqual(first.writeTime)).toBe(true);
        expect(created.updateTime?.isEqual(first.writeTime)).toBe(true);

        const second = await doc.update({ n: 2 });
        expect(second.writeTime.valueOf() > first.writeTime.valueOf()).toBe(true);
        const idle = await doc.update({ n: 2 });
        expect(idle.writeTime.isEqual(second.writeTime)).toBe(true);
        const after = await doc.get();
        expect(after.createTime?.isEqual(first.writeTime)).toBe(true);
        expect(after.updateTime?.isEqual(second.writeTime)).toBe(true);
        expect(after.readTime.valueOf() >= second.writeTime.valueOf()).toBe(true);
        expect(second.writeTime.nanoseconds % 1_000).toBe(0);
      }),
    );

    statement(
      target,
      62,
      'every commit has a later time than the one before, however fast they come',
      withFirestore(target, async (db) => {
        const times = await Promise.all(Array.from({ length: 50 }, async (_, n) => (await db.doc('c/a').set({ n })).writeTime.valueOf()));
        expect(new Set(times).size).toBe(50);
        expect((await db.doc('c/a').get()).updateTime?.valueOf()).toBe(times.sort().at(-1));
      }),
    );

    statement(
      target,
      63,
      'getAll answers found and missing documents in the order asked for, with only the masked fields',
      withFirestore(target, async (db) => {
        await db.doc('c/a').set({ x: 1, y: { z: 2, w: 3 } });
        await db.doc('c/b').set({ x: 4 });
        const read = await db.getAll(db.doc('c/b'), db.doc('c/none'), db.doc('c/a'), db.doc('c/b'), { fieldMask: ['y.z', 'none'] });
        expect(read.map(({ id, exists }) => [id, exists])).toEqual([
          ['b', true],
          ['none', false],
          ['a', true],
          ['b', true],
        ]);
        expect(read.map((snapshot) => snapshot.data())).toEqual([{}, undefined, { y: { z: 2 } }, {}]);
      }),
    );

    statement(
      target,
      78,
      'BatchWrite answers for each write on its own',
      withFirestore(target, async (db) => {
        await db.doc('c/there').set({ n: 1 });
        const writer = db.bulkWriter();
        writer.onWriteError(() => false);
        const codes = [
          codeOf(writer.create(db.doc('c/new'), { at: Timestamp.fromMillis(1) })),
          codeOf(writer.create(db.doc('c/there'), { n: 2 })),
          codeOf(writer.update(db.doc('c/missing'), { n: 2 })),
        ];
        await writer.close();
        expect(await Promise.all(codes)).toEqual(['OK', 'ALREADY_EXISTS', 'NOT_FOUND']);
      }),
    );

    statement(
      target,
      78,
      'a document above 1 MiB is refused with INVALID_ARGUMENT, and one just below is kept',
      withFirestore(target, async (db) => {
        // 20 for the name c/a, 5 + 1 for text, 2 + 1 for b, 32 for the document.
        const a = 'x'.repeat(500_000);
        expect(await codeOf(db.doc('c/a').set({ text: a, b: 'x'.repeat(548_515) }))).toBe('OK');
        expect(await codeOf(db.doc('c/a').set({ text: a, b: 'x'.repeat(548_516) }))).toBe('INVALID_ARGUMENT');
        expect(await codeOf(db.doc('c/a').set({ text: 'x'.repeat(1_048_487) }))).toBe('OK');
        expect(await codeOf(db.doc('c/a').set({ text: 'x'.repeat(1_048_488) }))).toBe('INVALID_ARGUMENT');
      }),
    );

    statement(
      target,
      78,
      'a request above 10 MiB is refused with INVALID_ARGUMENT',
      withFirestore(target, async (db) => {
        const batch = db.batch();
        for (let n = 0; n < 11; n++) batch.set(db.doc(`c/${n}`), { text: 'x'.repeat(1_000_000) });
        expect(await codeOf(batch.commit())).toBe('INVALID_ARGUMENT');
      }),
      { differs: 'takes no request above 4 MiB and answers RESOURCE_EXHAUSTED, which the client tries again for ten minutes' },
    );
  });
}
