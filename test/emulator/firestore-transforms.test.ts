import { FieldValue } from '@google-cloud/firestore';
import { afterAll, describe, expect, test } from 'vitest';
import { transformed } from '../../src/emulator/firestore/transforms.ts';
import { arrayOf, doubleOf, integerOf, nullOf, type Value } from '../../src/emulator/firestore/values.ts';
import { statement } from '../support/targets.ts';
import { embeddedFirestore, firestoreTargets, withFirestore, withRawFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
afterAll(() => emulator.stop());

for (const target of firestoreTargets(emulator)) {
  describe(`Firestore transforms: ${target.name}`, () => {
    statement(
      target,
      61,
      'increment starts at the operand and adds; arrays compare by value; a server time is one per commit, in whole milliseconds',
      withFirestore(target, async (db) => {
        const doc = db.doc('c/a');
        await doc.set({ i: 1, d: 0.5, text: 'x', items: [1, 'a', { b: 2 }] });
        const before = (await doc.get()).updateTime;
        const batch = db.batch();
        batch.update(doc, {
          i: FieldValue.increment(2),
          d: FieldValue.increment(1),
          text: FieldValue.increment(3),
          none: FieldValue.increment(4),
          items: FieldValue.arrayUnion(1.0, 'b', 'b', { b: 2 }),
          noItems: FieldValue.arrayUnion('a'),
          at: FieldValue.serverTimestamp(),
          m: { at: FieldValue.serverTimestamp() },
        });
        batch.set(db.doc('c/b'), { at: FieldValue.serverTimestamp() });
        await batch.commit();
        const read = await doc.get();
        expect(read.data()).toMatchObject({ i: 3, d: 1.5, text: 3, none: 4, items: [1, 'a', { b: 2 }, 'b'], noItems: ['a'] });
        const at = read.get('at');
        expect(at.isEqual(read.get('m.at'))).toBe(true);
        expect(at.isEqual((await db.doc('c/b').get()).get('at'))).toBe(true);
        expect(at.nanoseconds % 1_000_000).toBe(0);
        expect(at.toMillis()).toBeGreaterThanOrEqual(before?.toMillis() ?? Number.NaN);
        expect(at.toMillis()).toBeLessThanOrEqual(read.updateTime?.toMillis() ?? Number.NaN);

        await doc.update({
          items: FieldValue.arrayRemove('a', { b: 2 }, 'none'),
          noItems: FieldValue.arrayRemove('a'),
          i: FieldValue.arrayRemove('a'),
        });
        expect((await doc.get()).data()).toMatchObject({ items: [1, 'b'], noItems: [], i: [] });
      }),
    );
  });
}

describe('Firestore transforms', () => {
  test(
    'G61: a commit answers what every transform made, in order, and null for an array',
    withRawFirestore(emulator.target, async (raw, database) => {
      const [answer] = await raw('Commit', {
        database,
        writes: [
          {
            update: { name: `${database}/documents/c/a`, fields: { n: { integerValue: 40 } } },
            updateTransforms: [
              { fieldPath: 'n', increment: { integerValue: 2 } },
              { fieldPath: 'items', appendMissingElements: { values: [{ stringValue: 'a' }] } },
              { fieldPath: 'at', setToServerValue: 'REQUEST_TIME' },
              { fieldPath: 'n', maximum: { doubleValue: 42.5 } },
            ],
          },
        ],
      });
      expect(answer?.writeResults?.[0]?.transformResults).toEqual([
        integerOf(42),
        nullOf(),
        { valueType: 'timestampValue', timestampValue: expect.objectContaining({ seconds: answer?.commitTime?.seconds }) },
        doubleOf(42.5),
      ]);
    }),
  );

  const max = integerOf(9_223_372_036_854_775_807n);
  const min = integerOf(-9_223_372_036_854_775_808n);
  const text: Value = { valueType: 'stringValue', stringValue: 'x' };
  test.each<[string, Value | undefined, Value, Value]>([
    ['saturates at the top', max, integerOf(1), max],
    ['saturates at the bottom', min, integerOf(-1), min],
    ['reaches the top', integerOf(9_223_372_036_854_775_806n), integerOf(1), max],
    ['is exact beyond 2^53', integerOf(9_007_199_254_740_993n), integerOf(2), integerOf(9_007_199_254_740_995n)],
    ['turns to double with a double', integerOf(1), doubleOf(0.5), doubleOf(1.5)],
    ['stays double with an integer', doubleOf(0.5), integerOf(1), doubleOf(1.5)],
    ['replaces what is no number', text, integerOf(7), integerOf(7)],
    ['starts at the operand', undefined, doubleOf(7), doubleOf(7)],
  ])('increment %s', (_, current, increment, value) => {
    expect(transformed(current, { fieldPath: 'n', transformType: 'increment', increment }, 0).value).toEqual(value);
  });

  test.each<[Value | undefined, Value, Value, Value]>([
    [integerOf(3), integerOf(4), integerOf(4), integerOf(3)],
    [integerOf(3), doubleOf(3), integerOf(3), integerOf(3)],
    [doubleOf(3), integerOf(3), doubleOf(3), doubleOf(3)],
    [integerOf(3), doubleOf(2.5), integerOf(3), doubleOf(2.5)],
    [integerOf(3), doubleOf(Number.NaN), doubleOf(Number.NaN), doubleOf(Number.NaN)],
    [text, integerOf(1), integerOf(1), integerOf(1)],
    [undefined, integerOf(1), integerOf(1), integerOf(1)],
  ])(
    'maximum and minimum keep the larger and the smaller number with its type, the stored one when equal (%#)',
    (current, operand, larger, smaller) => {
      expect(transformed(current, { fieldPath: 'n', transformType: 'maximum', maximum: operand }, 0).value).toEqual(larger);
      expect(transformed(current, { fieldPath: 'n', transformType: 'minimum', minimum: operand }, 0).value).toEqual(smaller);
    },
  );

  test('array transforms take 3 and 3.0 as equal, and NaN as equal to NaN', () => {
    const current = arrayOf([integerOf(3), doubleOf(Number.NaN), text]);
    const items = { values: [doubleOf(3), doubleOf(Number.NaN)] };
    expect(transformed(current, { fieldPath: 'n', transformType: 'appendMissingElements', appendMissingElements: items }, 0).value).toEqual(
      current,
    );
    expect(transformed(current, { fieldPath: 'n', transformType: 'removeAllFromArray', removeAllFromArray: items }, 0).value).toEqual(
      arrayOf([text]),
    );
  });

  test('a server time is cut to milliseconds', () => {
    const at = transformed(
      undefined,
      { fieldPath: 'n', transformType: 'setToServerValue', setToServerValue: 'REQUEST_TIME' },
      1_700_000_000_123_999,
    ).value;
    expect(at).toEqual({ valueType: 'timestampValue', timestampValue: { seconds: '1700000000', nanos: 123_000_000 } });
  });
});
