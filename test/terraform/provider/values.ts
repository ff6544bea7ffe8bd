import { decode, ExtensionCodec, encode } from '@msgpack/msgpack';
import type { Attribute, AttributeType, Block } from './schema.ts';

/** A value that is known only after apply. */
export class Unknown {
  toJSON(): string {
    return '(known after apply)';
  }
}
export const unknown = new Unknown();

export type Value = null | string | number | boolean | Unknown | readonly Value[] | Values;
export type Values = { readonly [name: string]: Value };

/** Terraform writes an unknown value as an extension: 0 with nothing known of it, 12 with something. */
const extensionCodec = new ExtensionCodec();
extensionCodec.register({ type: 0, encode: (value) => (value instanceof Unknown ? Uint8Array.of(0) : null), decode: () => unknown });
extensionCodec.register({ type: 12, encode: () => null, decode: () => unknown });

/** The bytes of an object of this block, or of null. */
export const toBytes = (block: Block, values: Values | null): Uint8Array => encode(values && completed(block, values), { extensionCodec });

export const fromBytes = (bytes: Uint8Array): Values | null =>
  bytes.length === 0 ? null : (decode(bytes, { extensionCodec }) as Values | null);

/** Every member that the block knows, and no other: Terraform refuses an object with one less or more. */
export function completed(block: Block, values: Values): Values {
  const members: [string, Value][] = [];
  for (const [name, { type }] of block.attributes) members.push([name, completedValue(type, values[name] ?? null)]);
  for (const [name, nested] of block.blocks) {
    const given = values[name] ?? null;
    if (given instanceof Unknown) members.push([name, given]);
    else if (nested.nesting === 'single') members.push([name, isObject(given) ? completed(nested.block, given) : null]);
    else members.push([name, elementsOf(given).map((element) => (isObject(element) ? completed(nested.block, element) : element))]);
  }
  return Object.fromEntries(members);
}

/** Objects that only the service fills have all their members too. */
function completedValue(type: AttributeType, value: Value): Value {
  const element = typeof type === 'string' ? undefined : type[1];
  if (!Array.isArray(element) || !Array.isArray(value)) return value;
  const members = Object.entries(element[1] as Readonly<Record<string, AttributeType>>);
  return value.map((object: Value) =>
    isObject(object) ? Object.fromEntries(members.map(([name, inner]) => [name, completedValue(inner, object[name] ?? null)])) : object,
  );
}

export const isObject = (value: Value | undefined): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Unknown);

export const elementsOf = (value: Value | undefined): readonly Value[] => (Array.isArray(value) ? value : []);

/** The objects of a nested block, whether there may be one of it or many. */
export const objectsOf = (value: Value | undefined): readonly Values[] =>
  (isObject(value) ? [value] : elementsOf(value)).filter((element) => isObject(element));

/** Text of an attribute; empty where it is null or not yet known. */
export const text = (value: Value | undefined): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';

export function same(one: Value | undefined, other: Value | undefined): boolean {
  if (one instanceof Unknown || other instanceof Unknown) return false;
  return JSON.stringify(sorted(one ?? null)) === JSON.stringify(sorted(other ?? null));
}

const sorted = (value: Value): Value => {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((name) => [name, sorted(value[name] ?? null)]),
  );
};

export type Visited = { readonly path: string; readonly attribute: Attribute; readonly value: Value };

/** Each attribute that has a value, with its path: `retry_policy.minimum_backoff`. */
export function visited(block: Block, values: Values, prefix = ''): readonly Visited[] {
  const own = [...block.attributes].map(([name, attribute]) => ({ path: prefix + name, attribute, value: values[name] ?? null }));
  const nested = [...block.blocks].flatMap(([name, { block: inner }]) =>
    objectsOf(values[name]).flatMap((element) => visited(inner, element, `${prefix}${name}.`)),
  );
  return [...own.filter(({ value }) => value !== null), ...nested];
}
