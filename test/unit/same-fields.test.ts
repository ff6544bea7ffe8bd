import { FieldValue, Firestore, GeoPoint, Timestamp } from '@google-cloud/firestore';
import { expect, test } from 'vitest';
import { differingFields } from '../../src/shared/adapters/same-fields.ts';

const db = new Firestore({ projectId: 'p' });
const other = new Firestore({ projectId: 'p' });

/** Of a class that is not ours, as a second copy of the client has. */
class OtherTimestamp {
  readonly seconds: number;
  readonly nanoseconds: number;
  constructor(seconds: number, nanoseconds: number) {
    this.seconds = seconds;
    this.nanoseconds = nanoseconds;
  }
  toMillis = () => this.seconds * 1_000;
  isEqual = (value: unknown) => value instanceof OtherTimestamp;
}
class OtherPoint {
  readonly latitude = 1;
  readonly longitude = 2;
  isEqual = (value: unknown) => value instanceof OtherPoint;
}
const otherReference = { path: 'c/d', isEqual: () => false };
const otherVector = { toArray: () => [1, 2], isEqual: () => false };
const int = (value: number) => ({ value, isEqual: (than: { value?: number }) => than.value === value });

test.each<[string, unknown, unknown, boolean]>([
  ['texts', 'a', 'a', true],
  ['other texts', 'a', 'b', false],
  ['a number and a text', 1, '1', false],
  ['0 and -0', 0, -0, true],
  ['no numbers', Number.NaN, Number.NaN, true],
  ['a number and no number', 1, Number.NaN, false],
  ['a BigInt, which is stored as a number', 7, 7n, true],
  ['a BigInt and another number', 7, 8n, false],
  ['a BigInt and a text', '7', 7n, false],
  ['two null', null, null, true],
  ['null and nothing', undefined, null, false],
  ['a map and null', null, {}, false],
  ['false and 0', 0, false, false],
  ['lists', [1, ['a']], [1, ['a']], true],
  ['lists in another order', [2, 1], [1, 2], false],
  ['a list and a longer one', [1, 2], [1], false],
  ['a list and a map', [1], { 0: 1 }, false],
  ['a map and a list', { 0: 1 }, [1], false],
  ['maps with keys in another order', { a: 1, b: { c: 2 } }, { b: { c: 2 }, a: 1 }, true],
  ['a map and one with a key less', { a: 1, b: 2 }, { a: 1 }, false],
  ['a map and one with a key more', { a: 1 }, { a: 1, b: 2 }, false],
  ['a map and one with a key more that is not written', { a: 1 }, { a: 1, b: undefined }, true],
  ['a map and one with a key left to the server', { a: 1, b: 2 }, { a: 1, b: FieldValue.serverTimestamp() }, true],
  ['a map and a Map', { a: 1 }, new Map([['a', 1]]), true],
  ['a map and another Map', { a: 1 }, new Map([['a', 2]]), false],
  ['bytes', Buffer.from([0, 255]), new Uint8Array([0, 255]), true],
  ['other bytes', Buffer.from([0, 255]), new Uint8Array([0, 254]), false],
  ['bytes and a list', Buffer.from([1]), [1], false],
  ['instants', new Timestamp(5, 1_000), new Timestamp(5, 1_000), true],
  ['instants that differ below what is stored', new Timestamp(5, 1_000), new Timestamp(5, 1_999), true],
  ['instants a microsecond apart', new Timestamp(5, 1_000), new Timestamp(5, 2_000), false],
  ['an instant and a Date', new Timestamp(5, 7_000_000), new Date(5_007), true],
  ['an instant and a Date before 1970', new Timestamp(-6, 993_000_000), new Date(-5_007), true],
  ['an instant and a Date a millisecond off', new Timestamp(5, 7_000_000), new Date(5_008), false],
  ['an instant and one of a second copy', new OtherTimestamp(5, 1_000), new Timestamp(5, 1_000), true],
  ['an instant and another one of a second copy', new OtherTimestamp(6, 1_000), new Timestamp(5, 1_000), false],
  ['an instant and its parts', { seconds: 5, nanoseconds: 0 }, new Timestamp(5, 0), false],
  ['points', new GeoPoint(1, 2), new GeoPoint(1, 2), true],
  ['other points', new GeoPoint(1, 2), new GeoPoint(1, 3), false],
  ['a point and one of a second copy', new OtherPoint(), new GeoPoint(1, 2), true],
  ['a point and its parts', { latitude: 1, longitude: 2 }, new GeoPoint(1, 2), false],
  ['references', db.doc('c/d'), db.doc('c/d'), true],
  ['references by two clients', other.doc('c/d'), db.doc('c/d'), true],
  ['references to two documents', db.doc('c/e'), db.doc('c/d'), false],
  ['a reference and one of a second copy', otherReference, db.doc('c/d'), true],
  ['vectors', FieldValue.vector([1, 2]), FieldValue.vector([1, 2]), true],
  ['other vectors', FieldValue.vector([1, 3]), FieldValue.vector([1, 2]), false],
  ['a vector and one of a second copy', otherVector, FieldValue.vector([1, 2]), true],
  ['a vector and a list', [1, 2], FieldValue.vector([1, 2]), false],
  ['other values that compare themselves', int(1), int(1), true],
  ['other values that compare themselves and differ', int(1), int(2), false],
  ['what is left to the server and anything', 'x', FieldValue.increment(1), true],
])('%s', (_, stored, written, isSame) => {
  expect(differingFields({ field: stored }, { field: written })).toEqual(isSame ? [] : ['field']);
});

test('only what is written and differs is named', () => {
  expect(differingFields({ a: 1, b: 2, c: 3 }, { a: 1, b: 3, d: 4, e: undefined })).toEqual(['b', 'd']);
});
