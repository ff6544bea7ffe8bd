import { afterAll, describe, expect, test } from 'vitest';
import { integerOf } from '../../src/emulator/firestore/values.ts';
import { codeOf, embeddedFirestore, firestoreTargets, withFirestore, withRawFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
afterAll(() => emulator.stop());

const fields = (n: number, more: object = {}) => ({ n: { integerValue: n }, ...more });

for (const target of firestoreTargets(emulator)) {
  describe.concurrent(`Firestore calls that the Node client does not make: ${target.name}`, () => {
    test(
      'CreateDocument makes a document once, under the id given or one of its own',
      withRawFirestore(target, async (raw, database) => {
        const parent = `${database}/documents`;
        const create = { parent, collectionId: 'c', documentId: 'a', document: { fields: fields(1) } };
        const [made] = await raw('CreateDocument', create);
        expect(made).toMatchObject({ name: `${parent}/c/a`, fields: { n: integerOf(1) } });
        expect(await codeOf(raw('CreateDocument', create))).toBe('ALREADY_EXISTS');
        const [named] = await raw('CreateDocument', { ...create, documentId: '' });
        expect(named?.name).toMatch(/\/c\/[\w-]{20}$/);
      }),
    );

    test(
      'UpdateDocument writes what its mask names, under its precondition, and answers with the fields asked for',
      withRawFirestore(target, async (raw, database) => {
        const name = `${database}/documents/c/a`;
        const absent = { document: { name, fields: fields(1) }, currentDocument: { exists: true } };
        expect(await codeOf(raw('UpdateDocument', absent))).toBe('NOT_FOUND');
        await raw('UpdateDocument', { document: { name, fields: fields(1, { kept: { integerValue: 5 } }) } });
        const update = { document: { name, fields: fields(2) }, updateMask: { fieldPaths: ['n'] }, mask: { fieldPaths: ['n'] } };
        const [updated] = await raw('UpdateDocument', update);
        expect(updated?.fields).toEqual({ n: integerOf(2) });
        const [document] = await raw('GetDocument', { name });
        expect(document?.fields).toEqual({ n: integerOf(2), kept: integerOf(5) });
      }),
    );

    test(
      'DeleteDocument deletes under its precondition',
      withRawFirestore(target, async (raw, database) => {
        const name = `${database}/documents/c/a`;
        expect(await codeOf(raw('DeleteDocument', { name, currentDocument: { exists: true } }))).toBe('NOT_FOUND');
        await raw('UpdateDocument', { document: { name, fields: fields(1) } });
        expect(await codeOf(raw('DeleteDocument', { name }))).toBe('OK');
        expect(await codeOf(raw('GetDocument', { name }))).toBe('NOT_FOUND');
      }),
    );
  });
}

describe('Firestore partitions: embedded', () => {
  test(
    'the parts of a collection group hold each of its documents once, in about equal numbers',
    withFirestore(emulator.target, async (db) => {
      const batch = db.batch();
      for (let n = 0; n < 20; n++) batch.set(db.doc(`above/${n % 3}/c/${n}`), { n });
      await batch.commit();
      const sizes: number[] = [];
      const found: number[] = [];
      for await (const partition of db.collectionGroup('c').getPartitions(4)) {
        const { docs } = await partition.toQuery().get();
        sizes.push(docs.length);
        found.push(...docs.map((doc) => doc.get('n')));
      }
      expect(sizes).toEqual([5, 5, 5, 5]);
      expect(found.sort((left, right) => left - right)).toEqual(Array.from({ length: 20 }, (_, n) => n));
    }),
  );

  test(
    'there are no more parts than documents, and pages of cuts join',
    withRawFirestore(emulator.target, async (raw, database) => {
      const parent = `${database}/documents`;
      const structuredQuery = { from: [{ collectionId: 'c', allDescendants: true }] };
      const ask = { parent, structuredQuery, partitionCount: 9, pageSize: 1 };
      expect((await raw('PartitionQuery', ask))[0]).toMatchObject({ partitions: [], nextPageToken: '' });
      for (const id of ['a', 'b', 'c']) await raw('UpdateDocument', { document: { name: `${parent}/c/${id}` } });
      const [first] = await raw('PartitionQuery', ask);
      expect(first).toMatchObject({ partitions: [{ values: [{ referenceValue: `${parent}/c/b` }], before: true }] });
      const [second] = await raw('PartitionQuery', { ...ask, pageToken: first?.nextPageToken });
      expect(second).toMatchObject({ partitions: [{ values: [{ referenceValue: `${parent}/c/c` }] }], nextPageToken: '' });
      for (const wrong of [{ partitionCount: 0 }, { structuredQuery: { from: [{ collectionId: 'c' }] } }])
        expect(await codeOf(raw('PartitionQuery', { ...ask, ...wrong }))).toBe('INVALID_ARGUMENT');
    }),
  );
});
