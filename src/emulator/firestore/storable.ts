import { invalidArgument } from '../grpc.ts';
import { checkBytes, type FieldPath } from './paths.ts';
import { arrayOf, type Fields, mapOf, timestampValueOf, type Value, vectorItems } from './values.ts';

export const documentLimitBytes = 1_048_576;
export const requestLimitBytes = 10_485_760;
const valueLimitBytes = 1_048_487;
const depthLimit = 20;
const reservedPattern = /^__.*__$/s;

/** The fields as they are stored: names and types checked, instants cut to microseconds. */
export function storableFields(fields: Fields, depth = 0): Fields {
  const stored: Record<string, Value> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (name === '' || reservedPattern.test(name)) throw invalidArgument(`field name "${name}" is empty or reserved`);
    checkBytes('a field name', name);
    stored[name] = storableValue(value, depth);
  }
  return stored;
}

export function storableValue(value: Value, depth = 0): Value {
  switch (value.valueType) {
    case 'arrayValue':
      return arrayOf(value.arrayValue.values.map((item) => storableItem(item, depth + 1)));
    case 'mapValue':
      if (depth >= depthLimit) throw invalidArgument(`maps and arrays are nested more than ${depthLimit} deep`);
      return vectorItems(value) ? value : mapOf(storableFields(value.mapValue.fields, depth + 1));
    case 'timestampValue': {
      const { seconds, nanos } = value.timestampValue;
      return nanos % 1_000 === 0 ? value : timestampValueOf({ seconds, nanos: nanos - (nanos % 1_000) });
    }
    case 'stringValue':
      return checkLength(value, Buffer.byteLength(value.stringValue));
    case 'bytesValue':
      return checkLength(value, value.bytesValue.length);
    case 'nullValue':
    case 'booleanValue':
    case 'integerValue':
    case 'doubleValue':
    case 'referenceValue':
    case 'geoPointValue':
      return value;
    default:
      throw invalidArgument(`a value of type ${(value as { valueType?: string }).valueType ?? 'none'} cannot be stored`);
  }
}

function checkLength(value: Value, bytes: number): Value {
  if (bytes > valueLimitBytes) throw invalidArgument(`a value of ${bytes} bytes is longer than ${valueLimitBytes} bytes`);
  return value;
}

function storableItem(item: Value, depth: number): Value {
  if (depth > depthLimit) throw invalidArgument(`maps and arrays are nested more than ${depthLimit} deep`);
  if (item.valueType === 'arrayValue') throw invalidArgument('an array cannot hold an array');
  return storableValue(item, depth);
}

/** What a document counts against its limit, by Firestore's storage size rules. */
export function documentBytes(name: string, fields: Fields): number {
  return nameBytes(name) + fieldsBytes(fields) + 32;
}

export function fieldsBytes(fields: Fields): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(fields)) bytes += textBytes(name) + valueBytes(value);
  return bytes;
}

function valueBytes(value: Value): number {
  switch (value.valueType) {
    case 'nullValue':
    case 'booleanValue':
      return 1;
    case 'integerValue':
    case 'doubleValue':
    case 'timestampValue':
      return 8;
    case 'geoPointValue':
      return 16;
    case 'stringValue':
      return textBytes(value.stringValue);
    case 'bytesValue':
      return value.bytesValue.length;
    case 'referenceValue':
      return nameBytes(value.referenceValue);
    case 'arrayValue':
      return value.arrayValue.values.reduce((bytes, item) => bytes + valueBytes(item), 0);
    case 'mapValue':
      return fieldsBytes(value.mapValue.fields);
  }
}

const textBytes = (text: string) => Buffer.byteLength(text) + 1;

/** Only what follows `/documents/` counts, each segment with one byte, and 16 for the name. */
function nameBytes(name: string): number {
  const path = name.slice(name.indexOf('/documents/') + '/documents/'.length);
  return textBytes(path) + 16;
}

/** Refuses paths of which one holds another: which of them would win is not defined. */
export function checkDisjoint(paths: readonly FieldPath[]): void {
  const keys = paths.map((path) => path.map((segment) => `${segment}\u0000`).join('')).sort();
  for (const [index, key] of keys.entries()) {
    const before = keys[index - 1];
    if (before !== undefined && key.startsWith(before)) throw invalidArgument(`field paths conflict: "${key.replaceAll('\u0000', '.')}"`);
  }
}
