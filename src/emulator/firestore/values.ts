import type { Timestamp } from './instants.ts';
import { compareNames, compareText } from './text-order.ts';

export type Fields = { readonly [name: string]: Value };

/** A `google.firestore.v1.Value` as it arrives and as it is stored; nothing changes one in place. */
export type Value =
  | { readonly valueType: 'nullValue'; readonly nullValue: 'NULL_VALUE' }
  | { readonly valueType: 'booleanValue'; readonly booleanValue: boolean }
  | { readonly valueType: 'integerValue'; readonly integerValue: string }
  | { readonly valueType: 'doubleValue'; readonly doubleValue: number }
  | { readonly valueType: 'timestampValue'; readonly timestampValue: Timestamp }
  | { readonly valueType: 'stringValue'; readonly stringValue: string }
  | { readonly valueType: 'bytesValue'; readonly bytesValue: Buffer }
  | { readonly valueType: 'referenceValue'; readonly referenceValue: string }
  | { readonly valueType: 'geoPointValue'; readonly geoPointValue: { readonly latitude: number; readonly longitude: number } }
  | { readonly valueType: 'arrayValue'; readonly arrayValue: { readonly values: readonly Value[] } }
  | { readonly valueType: 'mapValue'; readonly mapValue: { readonly fields: Fields } };

export const nullOf = (): Value => ({ valueType: 'nullValue', nullValue: 'NULL_VALUE' });
export const integerOf = (value: bigint | number): Value => ({ valueType: 'integerValue', integerValue: String(value) });
export const doubleOf = (value: number): Value => ({ valueType: 'doubleValue', doubleValue: value });
export const timestampValueOf = (value: Timestamp): Value => ({ valueType: 'timestampValue', timestampValue: value });
export const referenceOf = (name: string): Value => ({ valueType: 'referenceValue', referenceValue: name });
export const arrayOf = (values: readonly Value[]): Value => ({ valueType: 'arrayValue', arrayValue: { values } });
export const mapOf = (fields: Fields): Value => ({ valueType: 'mapValue', mapValue: { fields } });

const typeOrders = {
  nullValue: 0,
  booleanValue: 1,
  integerValue: 2,
  doubleValue: 2,
  timestampValue: 3,
  stringValue: 4,
  bytesValue: 5,
  referenceValue: 6,
  geoPointValue: 7,
  arrayValue: 8,
  mapValue: 10,
} as const;
const vectorOrder = 9;

/** Where a value's type stands among the types; values of one order compare by what they hold. */
export function typeOrder(value: Value): number {
  return vectorItems(value) ? vectorOrder : typeOrders[value.valueType];
}

/** A vector is a map on the wire: `{ __type__: '__vector__', value: [ … ] }`. */
export function vectorItems(value: Value): readonly Value[] | undefined {
  if (value.valueType !== 'mapValue') return undefined;
  const { __type__: type, value: items } = value.mapValue.fields;
  if (type?.valueType !== 'stringValue' || type.stringValue !== '__vector__') return undefined;
  return items?.valueType === 'arrayValue' ? items.arrayValue.values : undefined;
}

export function isNumber(value: Value): boolean {
  return value.valueType === 'integerValue' || value.valueType === 'doubleValue';
}

export function isNaNValue(value: Value): boolean {
  return value.valueType === 'doubleValue' && Number.isNaN(value.doubleValue);
}

/** The number a value stands for, exact; 0 for what is none. */
export function numberOf(value: Value): number | bigint {
  if (value.valueType === 'doubleValue') return value.doubleValue;
  if (value.valueType !== 'integerValue') return 0;
  return value.integerValue.length < 16 ? Number(value.integerValue) : BigInt(value.integerValue);
}

/** Firestore's order over all values; 0 means equal for filters and array transforms (3 and 3.0, NaN and NaN). */
export function compareValues(left: Value, right: Value): number {
  const byType = typeOrder(left) - typeOrder(right);
  if (byType !== 0) return byType;
  switch (left.valueType) {
    case 'nullValue':
      return 0;
    case 'booleanValue':
      return right.valueType === left.valueType ? Number(left.booleanValue) - Number(right.booleanValue) : 0;
    case 'integerValue':
    case 'doubleValue':
      return compareNumbers(numberOf(left), numberOf(right));
    case 'timestampValue':
      return right.valueType === left.valueType ? compareTimestamps(left.timestampValue, right.timestampValue) : 0;
    case 'stringValue':
      return right.valueType === left.valueType ? compareText(left.stringValue, right.stringValue) : 0;
    case 'bytesValue':
      return right.valueType === left.valueType ? Buffer.compare(left.bytesValue, right.bytesValue) : 0;
    case 'referenceValue':
      return right.valueType === left.valueType ? compareNames(left.referenceValue, right.referenceValue) : 0;
    case 'geoPointValue':
      if (right.valueType !== left.valueType) return 0;
      return (
        compareNumbers(left.geoPointValue.latitude, right.geoPointValue.latitude) ||
        compareNumbers(left.geoPointValue.longitude, right.geoPointValue.longitude)
      );
    case 'arrayValue':
      return right.valueType === left.valueType ? compareArrays(left.arrayValue.values, right.arrayValue.values) : 0;
    case 'mapValue':
      return right.valueType === left.valueType ? compareMaps(left, right) : 0;
  }
}

export function equalValues(left: Value, right: Value): boolean {
  return compareValues(left, right) === 0;
}

/** NaN comes before every other number and equals itself; -0 equals 0. */
function compareNumbers(left: number | bigint, right: number | bigint): number {
  if (left < right) return -1;
  if (left > right) return 1;
  return Number(Number.isNaN(right)) - Number(Number.isNaN(left));
}

function compareTimestamps(left: Timestamp, right: Timestamp): number {
  return Number(left.seconds) - Number(right.seconds) || left.nanos - right.nanos;
}

function compareArrays(left: readonly Value[], right: readonly Value[]): number {
  for (const [index, item] of left.entries()) {
    const other = right[index];
    if (!other) return 1;
    const byItem = compareValues(item, other);
    if (byItem !== 0) return byItem;
  }
  return left.length - right.length;
}

function compareMaps(left: Value & { valueType: 'mapValue' }, right: Value & { valueType: 'mapValue' }): number {
  const leftItems = vectorItems(left);
  const rightItems = vectorItems(right);
  if (leftItems && rightItems) return leftItems.length - rightItems.length || compareArrays(leftItems, rightItems);
  const rightEntries = sortedEntries(right.mapValue.fields);
  const leftEntries = sortedEntries(left.mapValue.fields);
  for (const [index, [name, value]] of leftEntries.entries()) {
    const other = rightEntries[index];
    if (!other) return 1;
    const byEntry = compareText(name, other[0]) || compareValues(value, other[1]);
    if (byEntry !== 0) return byEntry;
  }
  return leftEntries.length - rightEntries.length;
}

function sortedEntries(fields: Fields): [string, Value][] {
  return Object.entries(fields).sort(([left], [right]) => compareText(left, right));
}
