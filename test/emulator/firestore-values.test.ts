import { describe, expect, test } from 'vitest';
import { parseFieldPath } from '../../src/emulator/firestore/paths.ts';
import { compareNames, compareText } from '../../src/emulator/firestore/text-order.ts';
import {
  arrayOf,
  compareValues,
  doubleOf,
  integerOf,
  mapOf,
  nullOf,
  referenceOf,
  timestampValueOf,
  type Value,
} from '../../src/emulator/firestore/values.ts';

const text = (value: string): Value => ({ valueType: 'stringValue', stringValue: value });
const bytes = (...values: number[]): Value => ({ valueType: 'bytesValue', bytesValue: Buffer.from(values) });
const bool = (value: boolean): Value => ({ valueType: 'booleanValue', booleanValue: value });
const point = (latitude: number, longitude: number): Value => ({ valueType: 'geoPointValue', geoPointValue: { latitude, longitude } });
const at = (seconds: string, nanos = 0) => timestampValueOf({ seconds, nanos });
const vector = (...items: number[]) => mapOf({ __type__: text('__vector__'), value: arrayOf(items.map(doubleOf)) });
const document = (path: string) => referenceOf(`projects/p/databases/d/documents/${path}`);

describe('Firestore values', () => {
  test('sort by type, then by what they hold', () => {
    const sorted: Value[] = [
      nullOf(),
      bool(false),
      bool(true),
      doubleOf(Number.NaN),
      doubleOf(Number.NEGATIVE_INFINITY),
      integerOf(-9_223_372_036_854_775_808n),
      integerOf(-1),
      doubleOf(0.5),
      integerOf(1),
      doubleOf(2 ** 53),
      integerOf(9_007_199_254_740_993n),
      integerOf(9_223_372_036_854_775_807n),
      doubleOf(2 ** 63),
      doubleOf(Number.POSITIVE_INFINITY),
      at('-5'),
      at('5', 999),
      at('5', 1_000),
      at('10'),
      text(''),
      text('B'),
      text('a'),
      text('ab'),
      text('\uffff'),
      text('\u{10000}'),
      bytes(),
      bytes(1, 2),
      bytes(2),
      document('a/b'),
      document('a/b/c/d'),
      document('a/b!'),
      point(-1, 5),
      point(1, -5),
      point(1, 5),
      arrayOf([]),
      arrayOf([integerOf(1)]),
      arrayOf([integerOf(1), nullOf()]),
      arrayOf([integerOf(2)]),
      vector(9),
      vector(1, 2),
      vector(1, 3),
      mapOf({}),
      mapOf({ a: integerOf(1) }),
      mapOf({ b: integerOf(0), a: integerOf(1) }),
      mapOf({ a: integerOf(2) }),
      mapOf({ b: integerOf(0) }),
    ];
    for (const [index, value] of sorted.entries()) {
      for (const [other, against] of sorted.entries())
        expect([index, other, Math.sign(compareValues(value, against))]).toEqual([index, other, Math.sign(index - other)]);
    }
  });

  test.each([
    ['3 and 3.0', integerOf(3), doubleOf(3)],
    ['0 and -0', doubleOf(0), doubleOf(-0)],
    ['NaN and NaN', doubleOf(Number.NaN), doubleOf(Number.NaN)],
    ['maps whatever the order of their fields', mapOf({ a: nullOf(), b: nullOf() }), mapOf({ b: nullOf(), a: nullOf() })],
  ])('%s are equal', (_, left, right) => {
    expect(compareValues(left, right)).toBe(0);
  });

  test('text sorts by its UTF-8 bytes, names by their segments', () => {
    expect(compareText('\u{1f600}', '\ufffd')).toBeGreaterThan(0);
    expect(compareText('a/b', 'a!b')).toBeGreaterThan(0);
    expect(compareNames('a/b', 'a!b')).toBeLessThan(0);
  });

  test.each([
    ['a', ['a']],
    ['a.b_1.C', ['a', 'b_1', 'C']],
    ['`a.b`.c', ['a.b', 'c']],
    ['`k-1`.`a\\`b`.`c\\\\d`', ['k-1', 'a`b', 'c\\d']],
  ])('the path %s has its segments', (path, segments) => {
    expect(parseFieldPath(path)).toEqual(segments);
  });

  test.each(['', '.', 'a.', '.a', 'a..b', '1a', 'a-b', '`a', '``', '`a`b', 'a b'])('"%s" is no path', (path) => {
    expect(() => parseFieldPath(path)).toThrow('is not a field path');
  });
});
