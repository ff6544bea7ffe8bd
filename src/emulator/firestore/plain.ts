import { type Fields, numberOf, type Value, vectorItems } from './values.ts';

/** A value as a test wants to compare it: whole numbers beyond what a double holds are bigints, references are document names. */
export type PlainValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Date
  | Uint8Array
  | { readonly latitude: number; readonly longitude: number }
  | readonly PlainValue[]
  | PlainFields;
export type PlainFields = { readonly [name: string]: PlainValue };

export function plainFields(fields: Fields): PlainFields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plainValue(value)]));
}

function plainValue(value: Value): PlainValue {
  switch (value.valueType) {
    case 'nullValue':
      return null;
    case 'booleanValue':
      return value.booleanValue;
    case 'integerValue': {
      const number = numberOf(value);
      return Number.isSafeInteger(Number(number)) ? Number(number) : number;
    }
    case 'doubleValue':
      return value.doubleValue;
    case 'timestampValue':
      return new Date(Number(value.timestampValue.seconds) * 1_000 + value.timestampValue.nanos / 1_000_000);
    case 'stringValue':
      return value.stringValue;
    case 'bytesValue':
      return value.bytesValue;
    case 'referenceValue':
      return value.referenceValue;
    case 'geoPointValue':
      return value.geoPointValue;
    case 'arrayValue':
      return value.arrayValue.values.map(plainValue);
    case 'mapValue':
      return vectorItems(value)?.map(plainValue) ?? plainFields(value.mapValue.fields);
  }
}
