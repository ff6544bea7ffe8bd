import { afterAll, describe, expect } from 'vitest';
import { statement } from '../support/targets.ts';
import { codeOf, embeddedFirestore, firestoreTargets, type RawAnswer, withRawFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
afterAll(() => emulator.stop());

const integer = (value: number | string) => ({ integerValue: value });
const increment = (by: number | string) => ({ fieldPath: 'n', increment: integer(by) });
const readWrite = { newTransaction: { readWrite: {} } };
const inC = { from: [{ collectionId: 'c' }] };

/** What one answer of a stream holds. */
const heldBy = ({ transaction, document, found, missing, readTime }: RawAnswer) =>
  [transaction?.length && 'transaction', document && 'document', found && 'found', missing && 'missing', readTime && 'read time']
    .filter(Boolean)
    .join(', ');

for (const target of firestoreTargets(emulator)) {
  describe.concurrent(`Firestore on the wire: ${target.name}`, () => {
    statement(
      target,
      61,
      'an increment stops at both ends of int64, exact next to them, and answers what it made',
      withRawFirestore(target, async (raw, database) => {
        const name = `${database}/documents/c/a`;
        const made = async (start: string, by: number) => {
          const write = { update: { name, fields: { n: integer(start) } }, updateTransforms: [increment(by)] };
          const [answer] = await raw('Commit', { database, writes: [write] });
          const [document] = await raw('GetDocument', { name });
          expect(answer?.writeResults?.[0]?.transformResults).toEqual([document?.fields?.n]);
          return document?.fields?.n;
        };
        expect(await made('9223372036854775806', 1)).toMatchObject(integer('9223372036854775807'));
        expect(await made('9223372036854775806', 2)).toMatchObject(integer('9223372036854775807'));
        expect(await made('-9223372036854775807', -1)).toMatchObject(integer('-9223372036854775808'));
        expect(await made('-9223372036854775807', -2)).toMatchObject(integer('-9223372036854775808'));
      }),
    );

    statement(
      target,
      61,
      'arrayUnion and arrayRemove take 3 and 3.0 as equal, and NaN as equal to NaN',
      withRawFirestore(target, async (raw, database) => {
        const name = `${database}/documents/c/a`;
        const held = [integer(3), { doubleValue: Number.NaN }, { stringValue: 'x' }];
        const same = { values: [{ doubleValue: 3 }, { doubleValue: Number.NaN }] };
        const itemsAfter = async (transform: object) => {
          const fields = { items: { arrayValue: { values: held } } };
          const write = { update: { name, fields }, updateTransforms: [{ fieldPath: 'items', ...transform }] };
          await raw('Commit', { database, writes: [write] });
          const [document] = await raw('GetDocument', { name });
          const items = document?.fields?.items;
          return items?.valueType === 'arrayValue' ? items.arrayValue.values.map(({ valueType }) => valueType) : undefined;
        };
        expect(await itemsAfter({ appendMissingElements: same })).toEqual(['integerValue', 'doubleValue', 'stringValue']);
        expect(await itemsAfter({ removeAllFromArray: same })).toEqual(['stringValue']);
      }),
    );

    statement(
      target,
      64,
      'every row of RunQuery has a read time, and an empty result is one answer with a read time',
      withRawFirestore(target, async (raw, database) => {
        const parent = `${database}/documents`;
        const rows = async () => (await raw('RunQuery', { parent, structuredQuery: inC })).map(heldBy);
        expect(await rows()).toEqual(['read time']);
        for (const id of ['a', 'b']) await raw('Commit', { database, writes: [{ update: { name: `${parent}/c/${id}` } }] });
        expect(await rows()).toEqual(['document, read time', 'document, read time']);
      }),
    );

    statement(
      target,
      68,
      'the first read begins the transaction, and its id comes first; a commit ends it',
      withRawFirestore(target, async (raw, database) => {
        const parent = `${database}/documents`;
        const name = `${parent}/c/a`;
        await raw('Commit', { database, writes: [{ update: { name } }] });
        const reads = {
          BatchGetDocuments: { database, documents: [name, `${parent}/c/none`] },
          RunQuery: { parent, structuredQuery: inC },
        };
        for (const [method, request] of Object.entries(reads)) {
          const [first, ...others] = await raw(method, { ...request, ...readWrite });
          expect(first?.transaction?.length).toBeGreaterThan(0);
          expect(others.filter((answer) => answer.transaction?.length)).toEqual([]);
          const commit = { database, transaction: first?.transaction, writes: [{ update: { name, fields: { n: integer(1) } } }] };
          expect(await codeOf(raw('Commit', commit))).toBe('OK');
          expect(await codeOf(raw('GetDocument', { name, transaction: first?.transaction }))).toBe('INVALID_ARGUMENT');
        }
      }),
    );
  });
}
