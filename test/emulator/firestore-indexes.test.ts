import { AggregateField, type CollectionReference, FieldPath, Filter, type Firestore } from '@google-cloud/firestore';
import { afterAll, describe, expect, test } from 'vitest';
import { checkIndexes } from '../../src/emulator/firestore/index-definitions.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { firestoreClient, statement } from '../support/targets.ts';
import { codeOf, embeddedFirestore, firestoreTargets, withFirestore } from './firestore-targets.ts';

const asc = (fieldPath: string) => ({ fieldPath, order: 'ASCENDING' });
const desc = (fieldPath: string) => ({ fieldPath, order: 'DESCENDING' });
const composite = (...fields: object[]) => ({ collectionGroup: 'c', queryScope: 'COLLECTION', fields });
const definitions = {
  indexes: [
    composite(asc('status'), asc('dueAt'), asc('__name__')),
    composite(desc('city'), asc('dueAt')),
    composite({ fieldPath: 'tags', arrayConfig: 'CONTAINS' }, desc('at')),
    { ...composite(asc('status'), asc('dueAt')), collectionGroup: 'g', queryScope: 'COLLECTION_GROUP' },
  ],
  fieldOverrides: [
    { collectionGroup: 'c', fieldPath: 'big', indexes: [] },
    { collectionGroup: 'c', fieldPath: 'upward', indexes: [{ order: 'ASCENDING', queryScope: 'COLLECTION' }] },
    { collectionGroup: 'g', fieldPath: 'n', indexes: [{ order: 'ASCENDING', queryScope: 'COLLECTION_GROUP' }] },
    { collectionGroup: 'bare', fieldPath: '*', indexes: [] },
    { collectionGroup: 'c', fieldPath: 'expireAt', ttl: true, indexes: [] },
  ],
};

const strict = await embeddedFirestore(manualTime(), { indexes: definitions });
const lax = await embeddedFirestore();
afterAll(() => Promise.all([strict.stop(), lax.stop()]));

type Ask = (c: CollectionReference, db: Firestore) => { get(): Promise<unknown> };

const served: [string, Ask][] = [
  ['the whole collection', (c) => c],
  ['equality in several fields', (c) => c.where('a', '==', 1).where('b', 'in', [1, 2]).where('d', 'array-contains', 1)],
  ['a range and the order of one field', (c) => c.where('a', '>', 1).where('a', '<', 5).orderBy('a', 'desc')],
  ['an order by the field that is compared', (c) => c.where('a', '==', 1).orderBy('a')],
  ['equality and the order of names', (c) => c.where('a', '==', 1).where(FieldPath.documentId(), '>', 'x')],
  ['an alternative of equalities', (c) => c.where(Filter.or(Filter.where('a', '==', 1), Filter.where('b', '==', 2)))],
  ['a composite index', (c) => c.where('status', '==', 1).where('dueAt', '<=', 5).orderBy('dueAt').limit(3)],
  ['two composite indexes merged', (c) => c.where('city', '==', 1).where('status', '==', 1).orderBy('dueAt')],
  ['a composite index of an array', (c) => c.where('tags', 'array-contains-any', [1]).orderBy('at', 'desc')],
  ['a composite index of a collection group', (_, db) => db.collectionGroup('g').where('status', '==', 1).orderBy('dueAt')],
  ['a single field of a collection group', (_, db) => db.collectionGroup('g').where('n', '>', 1)],
  ['a collection group as a whole', (_, db) => db.collectionGroup('c')],
  ['an ordered field with an index upward', (c) => c.orderBy('upward')],
  ['another collection than the override is of', (_, db) => db.collection('other').where('big', '==', 1)],
  ['a sum of a field', (c) => c.aggregate({ sum: AggregateField.sum('a') })],
  ['a count of a composite query', (c) => c.where('status', '==', 1).where('dueAt', '<', 1).count()],
  ['a sum of a field in a composite index', (c) => c.where('status', '==', 1).aggregate({ sum: AggregateField.sum('dueAt') })],
];

const inIndexes = (...fields: object[]) => `in "indexes": ${JSON.stringify(composite(...fields))}`;
const inOverrides = (fieldPath: string, mode: object, collectionGroup = 'c', queryScope = 'COLLECTION') =>
  `in "fieldOverrides": ${JSON.stringify({ collectionGroup, fieldPath, indexes: [{ ...mode, queryScope }] })}`;

const refused: [string, Ask, string][] = [
  ['equality and a range', (c) => c.where('a', '==', 1).where('b', '>', 1), inIndexes(asc('a'), asc('b'))],
  ['an order the other way', (c) => c.where('status', '==', 1).orderBy('dueAt', 'desc'), inIndexes(asc('status'), desc('dueAt'))],
  ['the last of an order', (c) => c.where('status', '==', 1).orderBy('dueAt').limitToLast(1), inIndexes(asc('status'), desc('dueAt'))],
  ['two orders', (c) => c.orderBy('a').orderBy('b', 'desc'), inIndexes(asc('a'), desc('b'))],
  ['two ranges', (c) => c.where('a', '>', 1).where('b', '>', 1), inIndexes(asc('a'), asc('b'))],
  [
    'a field that no merged index compares',
    (c) => c.where('status', '==', 1).where('x', '==', 1).orderBy('dueAt'),
    inIndexes(asc('status'), asc('x'), asc('dueAt')),
  ],
  [
    'an array and an order',
    (c) => c.where('tags', 'array-contains', 1).orderBy('a'),
    inIndexes({ fieldPath: 'tags', arrayConfig: 'CONTAINS' }, asc('a')),
  ],
  [
    'one of the alternatives',
    (c) => c.where(Filter.or(Filter.where('status', '==', 1), Filter.where('y', '==', 2))).orderBy('dueAt'),
    inIndexes(asc('y'), asc('dueAt')),
  ],
  ['names the other way round', (c) => c.orderBy('a').orderBy(FieldPath.documentId(), 'desc'), inIndexes(asc('a'), desc('__name__'))],
  ['a sum beside a comparison', (c) => c.where('a', '==', 1).aggregate({ sum: AggregateField.sum('b') }), inIndexes(asc('a'), asc('b'))],
  ['a field that is exempt', (c) => c.where('big', '==', 1), inOverrides('big', { order: 'ASCENDING' })],
  ['a field within one that is exempt', (c) => c.where('big.inner', '==', 1), inOverrides('big.inner', { order: 'ASCENDING' })],
  ['an array whose field has another', (c) => c.where('upward', 'array-contains', 1), inOverrides('upward', { arrayConfig: 'CONTAINS' })],
  ['a field whose index runs the other way', (c) => c.orderBy('upward', 'desc'), inOverrides('upward', { order: 'DESCENDING' })],
  [
    'any field of a collection that is exempt',
    (_, db) => db.collection('bare').where('a', '==', 1),
    inOverrides('a', { order: 'ASCENDING' }, 'bare'),
  ],
  [
    'a field of a collection group',
    (_, db) => db.collectionGroup('c').where('a', '==', 1),
    inOverrides('a', { order: 'ASCENDING' }, 'c', 'COLLECTION_GROUP'),
  ],
];

describe('Firestore queries without an index', () => {
  for (const target of firestoreTargets(strict)) {
    const db = firestoreClient(target.address, 'ptk-no-index');
    afterAll(() => db.terminate());

    for (const [title, ask, index] of refused) {
      statement(
        target,
        67,
        `in strict mode ${title} is FAILED_PRECONDITION where the index is missing that the message holds`,
        async () => {
          await expect(ask(db.collection('c'), db).get()).rejects.toMatchObject({
            code: 9,
            message: expect.stringContaining(`The query requires an index. firestore.indexes.json needs ${index}`),
          });
        },
        { differs: 'serves every query, whatever indexes there are' },
      );
    }
  }
});

describe('Firestore indexes: strict', () => {
  const client = firestoreClient(strict.target.address, 'ptk-index');
  afterAll(() => client.terminate());

  test.each(served)('a query is served by %s', async (_, ask) => {
    expect(await codeOf(ask(client.collection('c'), client).get())).toBe('OK');
  });

  test(
    'a listener to a query without an index is told so',
    withFirestore(strict.target, async (db) => {
      const { promise, reject } = Promise.withResolvers<never>();
      db.collection('c')
        .orderBy('a')
        .orderBy('b')
        .onSnapshot(() => {}, reject);
      await expect(promise).rejects.toThrow('9: The query requires an index');
    }),
  );

  test(
    'what the message asks for is enough',
    withFirestore(strict.target, async (db) => {
      const ask = (of: Firestore) => of.collection('c').where('x', '==', 1).orderBy('y', 'desc').get();
      const { message } = await ask(db).then(
        () => new Error('served'),
        (error: Error) => error,
      );
      const index = JSON.parse(message.slice(message.indexOf('{')));
      const taught = await embeddedFirestore(manualTime(), { indexes: { indexes: [index] } });
      await withFirestore(taught.target, async (again) => expect((await ask(again)).size).toBe(0))();
      await taught.stop();
    }),
  );
});

for (const target of firestoreTargets(lax)) {
  describe(`Firestore indexes: not strict: ${target.name}`, () => {
    test(
      'every query is served',
      withFirestore(target, async (db) => {
        for (const [, ask] of refused) expect(await codeOf(ask(db.collection('c'), db).get())).toBe('OK');
      }),
    );
  });
}

describe('Firestore index definitions', () => {
  test.each([
    [7, 'the index definitions are no object'],
    [{ indexes: {} }, 'indexes of the index definitions is no array'],
    [{ indexes: [composite(asc('a')), { fields: [asc('a')] }] }, 'indexes[1] needs collectionGroup, queryScope and fields'],
    [{ indexes: [composite({ fieldPath: 'a', order: 'UP' })] }, 'indexes[0] needs'],
    [{ fieldOverrides: [{ collectionGroup: 'c' }] }, 'fieldOverrides[0] needs collectionGroup, fieldPath and indexes'],
  ])('%j is refused: %s', (given, says) => {
    expect(() => checkIndexes(given)).toThrow(says);
  });
});
