import { afterAll, describe, expect, test } from 'vitest';
import { codeOf, embeddedFirestore, withFirestore, withRawFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
const { target } = emulator;
afterAll(() => emulator.stop());

const text = { stringValue: 'x' };
const field = { fieldPath: 'a' };
const from = [{ collectionId: 'c' }];

describe('Firestore mistakes: embedded', () => {
  test(
    'an empty request is INVALID_ARGUMENT, whatever the call',
    withRawFirestore(target, async (raw) => {
      const calls = ['Commit', 'BatchWrite', 'BeginTransaction', 'Rollback', 'GetDocument', 'ListDocuments', 'ListCollectionIds'];
      const streams = ['BatchGetDocuments', 'RunQuery', 'RunAggregationQuery', 'Listen'];
      for (const call of [...calls, 'CreateDocument', 'UpdateDocument', 'DeleteDocument', 'PartitionQuery', ...streams]) {
        expect([call, await codeOf(raw(call))]).toEqual([call, 'INVALID_ARGUMENT']);
      }
    }),
  );

  test(
    'what is not supported answers UNIMPLEMENTED and names itself',
    withRawFirestore(target, async (raw, database) => {
      const parent = `${database}/documents`;
      const calls: [string, string, object][] = [
        ['Firestore.ExecutePipeline', 'ExecutePipeline', { database }],
        ['Firestore.Write', 'Write', { database }],
        ['explain_options', 'RunQuery', { parent, structuredQuery: { from }, explainOptions: {} }],
        ['find_nearest', 'RunQuery', { parent, structuredQuery: { from, findNearest: {} } }],
        ['order_by', 'ListDocuments', { parent, collectionId: 'c', orderBy: 'a' }],
      ];
      for (const [missing, method, request] of calls) {
        await expect(raw(method, request)).rejects.toMatchObject({ code: 12, message: expect.stringContaining(missing) });
      }
    }),
  );

  test(
    'a mistake in a query reaches the caller of the client at once, without the tries of its own transport',
    withFirestore(target, async (db) => {
      await db.collection('c').get();
      const startedAtMs = performance.now();
      expect(await codeOf(db.collection('c').where('a', 'in', Array(31).fill(1)).get())).toBe('INVALID_ARGUMENT');
      expect(performance.now() - startedAtMs).toBeLessThan(1_000);
    }),
  );

  test.each<[string, (name: string) => object]>([
    ['no operation', () => ({})],
    ['no name', () => ({ update: {} })],
    ['the name of a collection', (name) => ({ delete: `${name}/more` })],
    ['the name of another database', (name) => ({ delete: name.replace('(default)', 'other') })],
    ['an empty id', (name) => ({ delete: `${name}/c/` })],
    ['a reserved id', (name) => ({ delete: `${name}/c/__x__` })],
    ['a reserved field', (name) => ({ update: { name, fields: { __x__: text } } })],
    ['a value without a type', (name) => ({ update: { name, fields: { a: {} } } })],
    ['an array in an array', (name) => ({ update: { name, fields: { a: { arrayValue: { values: [{ arrayValue: {} }] } } } } })],
    ['a mask that is no path', (name) => ({ update: { name }, updateMask: { fieldPaths: ['a..b'] } })],
    ['a mask of which one path holds another', (name) => ({ update: { name }, updateMask: { fieldPaths: ['a.b', 'a'] } })],
    ['a transform without a kind', (name) => ({ update: { name }, updateTransforms: [{ fieldPath: 'a' }] })],
    ['a transform without a path', (name) => ({ update: { name }, updateTransforms: [{ increment: { integerValue: 1 } }] })],
    ['an increment by a text', (name) => ({ update: { name }, updateTransforms: [{ fieldPath: 'a', increment: text }] })],
  ])('a write with %s is INVALID_ARGUMENT', async (_, write) => {
    await withRawFirestore(target, async (raw, database) => {
      const writes = [write(`${database}/documents/c/a`)];
      expect(await codeOf(raw('Commit', { database, writes }))).toBe('INVALID_ARGUMENT');
      expect(emulator.documentCount()).toBe(0);
    })();
  });

  test.each<[string, object]>([
    ['no collection', {}],
    ['two collections', { from: [...from, ...from] }],
    ['an id that is a path', { from: [{ collectionId: 'a/b' }] }],
    ['an empty filter', { from, where: {} }],
    ['an empty field filter', { from, where: { fieldFilter: {} } }],
    ['a filter without an operator', { from, where: { fieldFilter: { field, value: text } } }],
    ['an empty unary filter', { from, where: { unaryFilter: { field } } }],
    ['an empty composite filter', { from, where: { compositeFilter: { op: 'AND' } } }],
    ['in without an array', { from, where: { fieldFilter: { field, op: 'IN', value: text } } }],
    ['a name compared with a text', { from, where: { fieldFilter: { field: { fieldPath: '__name__' }, op: 'EQUAL', value: text } } }],
    ['an order without a field', { from, orderBy: [{}] }],
    ['a cursor longer than the order', { from, startAt: { values: [text, text] } }],
    ['a cursor with an empty value', { from, startAt: { values: [{}] } }],
    ['a negative limit', { from, limit: { value: -1 } }],
    ['a negative offset', { from, offset: -1 }],
    ['a projection that is no path', { from, select: { fields: [{ fieldPath: '1' }] } }],
  ])('a query with %s is INVALID_ARGUMENT', async (_, query) => {
    await withRawFirestore(target, async (raw, database) => {
      expect(await codeOf(raw('RunQuery', { parent: `${database}/documents`, structuredQuery: query }))).toBe('INVALID_ARGUMENT');
    })();
  });

  test(
    'a read or a commit of a transaction that never was is INVALID_ARGUMENT, and so is a write of a read-only one',
    withRawFirestore(target, async (raw, database) => {
      const name = `${database}/documents/c/a`;
      const transaction = Buffer.from('never begun');
      expect(await codeOf(raw('GetDocument', { name, transaction }))).toBe('INVALID_ARGUMENT');
      expect(await codeOf(raw('Commit', { database, transaction, writes: [] }))).toBe('INVALID_ARGUMENT');
      const [begun] = await raw('BeginTransaction', { database, options: { readOnly: {} } });
      const readOnly = begun?.transaction;
      expect(await codeOf(raw('Commit', { database, transaction: readOnly, writes: [{ update: { name } }] }))).toBe('INVALID_ARGUMENT');
      expect(await codeOf(raw('GetDocument', { name }))).toBe('NOT_FOUND');
    }),
  );

  test(
    'a read time now is answered, one in the future is INVALID_ARGUMENT, one before the last change UNIMPLEMENTED',
    withRawFirestore(target, async (raw, database) => {
      const name = `${database}/documents/c/a`;
      const [answer] = await raw('Commit', { database, writes: [{ update: { name } }] });
      const seconds = Number(answer?.commitTime?.seconds);
      expect(await codeOf(raw('GetDocument', { name, readTime: answer?.commitTime }))).toBe('OK');
      expect(await codeOf(raw('GetDocument', { name, readTime: { seconds: seconds + 60 } }))).toBe('INVALID_ARGUMENT');
      expect(await codeOf(raw('GetDocument', { name, readTime: { seconds: seconds - 1 } }))).toBe('UNIMPLEMENTED');
      await raw('Commit', { database, writes: [{ delete: name }] });
    }),
  );
});
