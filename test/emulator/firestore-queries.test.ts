import { AggregateField, FieldPath, Filter, type Query, Timestamp } from '@google-cloud/firestore';
import { afterAll, describe, expect } from 'vitest';
import { statement } from '../support/targets.ts';
import { embeddedFirestore, firestoreTargets, withFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
afterAll(() => emulator.stop());

const idsOf = async (query: Query) => (await query.get()).docs.map(({ id }) => id).join(' ');

for (const target of firestoreTargets(emulator)) {
  describe(`Firestore queries: ${target.name}`, () => {
    statement(
      target,
      64,
      'an empty query has size 0 and a read time, and every row has a read time',
      withFirestore(target, async (db) => {
        const empty = await db.collection('c').where('a', '==', 1).get();
        expect(empty.size).toBe(0);
        expect(empty.readTime.toMillis()).toBeGreaterThan(0);
        const { writeTime } = await db.doc('c/a').set({ a: 1 });
        await db.doc('c/b').set({ a: 1 });
        const rows = await db.collection('c').get();
        expect(rows.docs.map(({ readTime }) => readTime.valueOf() >= writeTime.valueOf())).toEqual([true, true]);
      }),
    );

    statement(
      target,
      65,
      'an outbox query has the due rows in order, ties by name, none that lacks a field, and pages without a gap or a repeat',
      withFirestore(target, async (db) => {
        const outbox = db.collection('outbox');
        const due = (ms: number) => Timestamp.fromMillis(1_000_000 + ms);
        const batch = db.batch();
        batch.set(outbox.doc('late'), { status: 'pending', dueAt: due(501) });
        batch.set(outbox.doc('edge'), { status: 'pending', dueAt: due(500) });
        batch.set(outbox.doc('tie-b'), { status: 'pending', dueAt: due(300) });
        batch.set(outbox.doc('tie-a'), { status: 'pending', dueAt: due(300) });
        batch.set(outbox.doc('tie-B'), { status: 'pending', dueAt: due(300) });
        batch.set(outbox.doc('first'), { status: 'pending', dueAt: due(1) });
        batch.set(outbox.doc('done'), { status: 'done', dueAt: due(2) });
        batch.set(outbox.doc('no-status'), { dueAt: due(3) });
        batch.set(outbox.doc('no-due'), { status: 'pending' });
        batch.set(outbox.doc('other-type'), { status: 'pending', dueAt: 4 });
        await batch.commit();

        const query = outbox.where('status', '==', 'pending').where('dueAt', '<=', due(500)).orderBy('dueAt');
        expect(await idsOf(query)).toBe('first tie-B tie-a tie-b edge');
        expect(await idsOf(query.limit(3))).toBe('first tie-B tie-a');
        const descending = outbox.where('status', '==', 'pending').where('dueAt', '<=', due(500)).orderBy('dueAt', 'desc');
        expect(await idsOf(descending)).toBe('edge tie-b tie-a tie-B first');

        const paged: string[] = [];
        let page = await query.limit(2).get();
        while (page.size > 0) {
          paged.push(...page.docs.map(({ id }) => id));
          page = await query.startAfter(page.docs.at(-1)).limit(2).get();
        }
        expect(paged.join(' ')).toBe('first tie-B tie-a tie-b edge');
      }),
    );

    statement(
      target,
      65,
      'cursors stand before or after their value, and limitToLast takes the end in the order asked for',
      withFirestore(target, async (db) => {
        const c = db.collection('c');
        await Promise.all([1, 2, 3, 4, 5].map((n) => c.doc(`d${n}`).set({ n })));
        const query = c.orderBy('n');
        expect(await idsOf(query.startAt(2).endAt(4))).toBe('d2 d3 d4');
        expect(await idsOf(query.startAfter(2).endBefore(4))).toBe('d3');
        expect(await idsOf(c.orderBy('n', 'desc').startAt(4).endBefore(2))).toBe('d4 d3');
        expect(await idsOf(query.limitToLast(2))).toBe('d4 d5');
        expect(await idsOf(query.endBefore(5).limitToLast(2))).toBe('d3 d4');
        expect(await idsOf(query.offset(1).limit(2))).toBe('d2 d3');
        expect(await idsOf(query.offset(9))).toBe('');
        expect(await idsOf(c.orderBy(FieldPath.documentId()).startAfter('d4'))).toBe('d5');
        expect(await idsOf(c.where(FieldPath.documentId(), 'in', ['d5', 'd1', 'none']))).toBe('d1 d5');
      }),
    );

    statement(
      target,
      66,
      'filters find what has the field and fits it: !=, not-in, in, null, NaN, ranges by type, arrays',
      withFirestore(target, async (db) => {
        const c = db.collection('c');
        await c.doc('one').set({ v: 1, tags: ['a', 'b'] });
        await c.doc('two').set({ v: 2.0, tags: ['b'] });
        await c.doc('nan').set({ v: Number.NaN, tags: 'a' });
        await c.doc('null').set({ v: null, tags: [] });
        await c.doc('text').set({ v: 'x' });
        await c.doc('none').set({ w: 1 });
        expect(await idsOf(c.where('v', '!=', 1))).toBe('nan two text');
        expect(await idsOf(c.where('v', '!=', null))).toBe('nan one two text');
        expect(await idsOf(c.where('v', '!=', Number.NaN))).toBe('one two text');
        expect(await idsOf(c.where('v', '==', null))).toBe('null');
        expect(await idsOf(c.where('v', '==', Number.NaN))).toBe('nan');
        expect(await idsOf(c.where('v', 'in', [1, 2, 'x']))).toBe('one text two');
        expect(await idsOf(c.where('v', 'in', [null, 1]))).toBe('one');
        expect(await idsOf(c.where('v', 'not-in', [1, 'x']))).toBe('nan two');
        expect(await idsOf(c.where('v', 'not-in', [null]))).toBe('');
        expect(await idsOf(c.where('v', '<', 5))).toBe('one two');
        expect(await idsOf(c.where('v', '>=', 'a'))).toBe('text');
        expect(await idsOf(c.where('tags', 'array-contains', 'b'))).toBe('one two');
        expect(await idsOf(c.where('tags', 'array-contains-any', ['a', 'z']))).toBe('one');
        expect(await idsOf(c.where(Filter.or(Filter.where('v', '==', 1), Filter.where('w', '==', 1))))).toBe('none one');
        const either = Filter.or(
          Filter.where('v', '>', 1),
          Filter.and(Filter.where('v', '==', 1), Filter.where('tags', 'array-contains', 'a')),
        );
        expect(await idsOf(c.where(either))).toBe('one two');
        expect(await idsOf(c.orderBy('v'))).toBe('null nan one two text');
      }),
    );

    statement(
      target,
      66,
      'a collection group reaches every depth below it, select answers only its fields, and aggregations count what has them',
      withFirestore(target, async (db) => {
        await db.doc('a/1/items/x').set({ n: 1, m: { p: 1, q: 2 } });
        await db.doc('a/1/b/2/items/y').set({ n: 2 });
        await db.doc('items/z').set({ n: 3.5 });
        await db.doc('a/1/others/w').set({ n: 4 });
        await db.doc('items/no-n').set({});
        expect(await idsOf(db.collectionGroup('items').where('n', '>', 0))).toBe('x y z');
        expect(await idsOf(db.collection('items'))).toBe('no-n z');

        const [x] = (await db.collection('a/1/items').select('m.q').get()).docs;
        expect(x?.data()).toEqual({ m: { q: 2 } });
        const [bare] = (await db.collection('a/1/items').select().get()).docs;
        expect([bare?.id, bare?.data()]).toEqual(['x', {}]);

        const group = db.collectionGroup('items');
        expect((await group.count().get()).data().count).toBe(4);
        expect((await group.limit(3).count().get()).data().count).toBe(3);
        const sums = await group
          .aggregate({ count: AggregateField.count(), sum: AggregateField.sum('n'), mean: AggregateField.average('n') })
          .get();
        expect(sums.data()).toEqual({ count: 3, sum: 6.5, mean: 6.5 / 3 });
        const none = await db
          .collection('none')
          .aggregate({ sum: AggregateField.sum('n'), mean: AggregateField.average('n') })
          .get();
        expect(none.data()).toEqual({ sum: 0, mean: null });
      }),
    );

    statement(
      target,
      66,
      'collections and documents are listed, those included that only lie above others',
      withFirestore(target, async (db) => {
        await db.doc('c/b').set({});
        await db.doc('c/a/deep/x').set({});
        await db.doc('d/a').set({});
        expect((await db.listCollections()).map(({ id }) => id)).toEqual(['c', 'd']);
        expect((await db.doc('c/a').listCollections()).map(({ id }) => id)).toEqual(['deep']);
        expect((await db.collection('c').listDocuments()).map(({ id }) => id)).toEqual(['a', 'b']);
        await db.recursiveDelete(db.collection('c'));
        expect((await db.listCollections()).map(({ id }) => id)).toEqual(['d']);
        await db.doc('d/a/deep/x').set({});
        await db.doc('d/b/deep/x').set({});
        await db.recursiveDelete(db.doc('d/a'));
        expect((await db.collectionGroup('deep').get()).docs.map(({ ref }) => ref.path)).toEqual(['d/b/deep/x']);
      }),
    );
  });
}
