import { invalidArgument } from '../grpc.ts';
import { timestampOf } from './instants.ts';
import { storableValue } from './storable.ts';
import {
  arrayOf,
  compareValues,
  doubleOf,
  equalValues,
  integerOf,
  isNaNValue,
  isNumber,
  nullOf,
  timestampValueOf,
  type Value,
} from './values.ts';

type Items = { readonly values: readonly Value[] };

/** A `DocumentTransform.FieldTransform` as it arrives. */
export type FieldTransform = { readonly fieldPath: string } & (
  | { readonly transformType: 'setToServerValue'; readonly setToServerValue: string }
  | { readonly transformType: 'increment'; readonly increment: Value }
  | { readonly transformType: 'maximum'; readonly maximum: Value }
  | { readonly transformType: 'minimum'; readonly minimum: Value }
  | { readonly transformType: 'appendMissingElements'; readonly appendMissingElements: Items }
  | { readonly transformType: 'removeAllFromArray'; readonly removeAllFromArray: Items }
);

/** `value` is stored, `result` is told to the caller (null where an array changed). */
export type Transformed = { readonly value: Value; readonly result: Value };

export function transformed(current: Value | undefined, transform: FieldTransform, commitAtMicros: number): Transformed {
  switch (transform.transformType) {
    case 'setToServerValue': {
      if (transform.setToServerValue !== 'REQUEST_TIME') throw invalidArgument(`server value ${transform.setToServerValue} is not known`);
      // Whole milliseconds, as the proto promises, though commit times have microseconds.
      return same(timestampValueOf(timestampOf(Math.floor(commitAtMicros / 1_000) * 1_000)));
    }
    case 'increment':
      return same(sum(current, numeric(transform.increment)));
    case 'maximum':
      return same(extreme(current, numeric(transform.maximum), 1));
    case 'minimum':
      return same(extreme(current, numeric(transform.minimum), -1));
    case 'appendMissingElements': {
      const items = itemsOf(current);
      for (const item of transform.appendMissingElements.values) {
        if (!items.some((held) => equalValues(held, item))) items.push(storableValue(item));
      }
      return { value: arrayOf(items), result: nullOf() };
    }
    case 'removeAllFromArray': {
      const gone = transform.removeAllFromArray.values;
      const items = itemsOf(current).filter((held) => !gone.some((item) => equalValues(held, item)));
      return { value: arrayOf(items), result: nullOf() };
    }
    default:
      throw invalidArgument('a field transform names no transformation');
  }
}

const same = (value: Value): Transformed => ({ value, result: value });

function numeric(value: Value): Value {
  if (!isNumber(value)) throw invalidArgument('a numeric transform needs an integer or a double');
  return value;
}

function itemsOf(current: Value | undefined): Value[] {
  return current?.valueType === 'arrayValue' ? [...current.arrayValue.values] : [];
}

const largest = 2n ** 63n - 1n;
const smallest = -(2n ** 63n);

function sum(current: Value | undefined, operand: Value): Value {
  if (!current || !isNumber(current)) return operand;
  if (current.valueType === 'integerValue' && operand.valueType === 'integerValue') {
    const total = BigInt(current.integerValue) + BigInt(operand.integerValue);
    if (total > largest) return integerOf(largest);
    return integerOf(total < smallest ? smallest : total);
  }
  return doubleOf(asDouble(current) + asDouble(operand));
}

/** Equal numbers of different types keep the stored one; NaN wins over every number. */
function extreme(current: Value | undefined, operand: Value, sign: 1 | -1): Value {
  if (!current || !isNumber(current)) return operand;
  if (isNaNValue(current) || isNaNValue(operand)) return doubleOf(Number.NaN);
  return compareValues(operand, current) * sign > 0 ? operand : current;
}

function asDouble(value: Value): number {
  return value.valueType === 'integerValue' ? Number(value.integerValue) : value.valueType === 'doubleValue' ? value.doubleValue : 0;
}
