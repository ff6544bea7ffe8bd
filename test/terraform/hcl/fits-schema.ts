import { broken, exclusive } from '../provider/constraints.ts';
import { type AttributeType, type Block, googleSchema, type NestedBlock } from '../provider/schema.ts';
import type { Value, Values } from '../provider/values.ts';
import { type Body, type Declared, isLiteral } from './tree.ts';

/** Arguments that Terraform itself takes. */
const meta = new Set(['count', 'for_each', 'depends_on', 'provider', 'lifecycle', 'provisioner', 'connection', 'dynamic']);

/** What of a resource or data source can be told to be wrong without evaluating it. */
export function misfits({ kind, type, body }: Declared): readonly string[] {
  if (type === 'terraform_data') return [];
  const block = googleSchema[kind === 'data' ? 'data' : 'resources'].get(type);
  if (!block) return [`${type} is no ${kind === 'data' ? 'data source' : 'resource'} of the schema`];
  const together = (exclusive[type] ?? []).map((group) => group.filter((name) => name in body)).filter(({ length }) => length > 1);
  return [
    ...misfitsOf(block, body, ''),
    ...(kind === 'resource' ? broken(type, literalsOf(block, body)) : []),
    ...together.map((group) => `${group.join(' and ')} exclude each other`),
  ];
}

function misfitsOf(block: Block, body: Body, prefix: string): readonly string[] {
  const dynamic = dynamicOf(body);
  const missing = [...block.attributes]
    .filter(([name, { required }]) => required && !(name in body))
    .map(([name]) => `${prefix}${name} is required`);
  const given = Object.entries(body)
    .filter(([name]) => !(prefix === '' && meta.has(name)) && name !== 'dynamic')
    .flatMap(([name, value]) => memberMisfits(block, name, value, prefix));
  const unknownDynamic = [...dynamic.keys()].filter((name) => !block.blocks.has(name)).map((name) => `${prefix}${name} is no block`);
  const nested = [...block.blocks].flatMap(([name, inner]) =>
    nestedMisfits(inner, body[name], dynamic.get(name) ?? [], `${prefix}${name}`),
  );
  return [...missing, ...given, ...unknownDynamic, ...nested];
}

/** The contents of `dynamic "name"` blocks. */
function dynamicOf(body: Body): ReadonlyMap<string, readonly Body[]> {
  const dynamic = (body.dynamic ?? {}) as Readonly<Record<string, readonly { readonly content?: readonly Body[] }[]>>;
  return new Map(Object.entries(dynamic).map(([name, blocks]) => [name, blocks.flatMap(({ content }) => content ?? [])]));
}

function memberMisfits(block: Block, name: string, value: unknown, prefix: string): readonly string[] {
  const attribute = block.attributes.get(name);
  if (!attribute) return block.blocks.has(name) ? [] : [`${prefix}${name} is no argument`];
  if (attribute.computed && !attribute.optional) return [`${prefix}${name} is set by the service; it cannot be configured`];
  return fits(attribute.type, value)
    ? []
    : [`${prefix}${name} is ${JSON.stringify(value)}; it must be of type ${JSON.stringify(attribute.type)}`];
}

function nestedMisfits({ min, max, block }: NestedBlock, value: unknown, dynamic: readonly Body[], path: string): readonly string[] {
  if (value !== undefined && !Array.isArray(value)) return [`${path} is a block`];
  const bodies = (value ?? []) as readonly Body[];
  // What a dynamic block makes is counted by Terraform alone.
  const count =
    bodies.length > max || (bodies.length < min && dynamic.length === 0)
      ? [`${path} is there ${bodies.length} times; it must be ${max === Number.POSITIVE_INFINITY ? `${min} or more` : `${min} to ${max}`}`]
      : [];
  return [...count, ...[...bodies, ...dynamic].flatMap((body) => misfitsOf(block, body, `${path}.`))];
}

/** Terraform turns a number or bool into text and back where that can be done. */
function fits(type: AttributeType, value: unknown): boolean {
  if (value === null || !isLiteral(value)) return true;
  if (type === 'string') return ['string', 'number', 'boolean'].includes(typeof value);
  if (type === 'number')
    return typeof value === 'number' || (typeof value === 'string' && value.trim() !== '' && !Number.isNaN(Number(value)));
  if (type === 'bool') return value === true || value === false || value === 'true' || value === 'false';
  const [collection, element] = type as readonly [string, AttributeType];
  if (collection === 'map') return isPlainObject(value) && Object.values(value).every((inner) => fits(element, inner));
  return Array.isArray(value) && value.every((inner) => fits(element, inner));
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What is written as a literal, for the limits of the APIs; all else counts as not given. */
function literalsOf(block: Block, body: Body): Values {
  const attributes = [...block.attributes].map(([name, { type }]): [string, Value] => [name, literal(type, body[name])]);
  const dynamic = dynamicOf(body);
  const blocks = [...block.blocks].map(([name, { block: inner }]): [string, Value] => {
    const bodies = [...(Array.isArray(body[name]) ? (body[name] as readonly Body[]) : []), ...(dynamic.get(name) ?? [])];
    return [name, bodies.map((nested) => literalsOf(inner, nested))];
  });
  return Object.fromEntries([...attributes, ...blocks]);
}

function literal(type: AttributeType, value: unknown): Value {
  if (value === undefined || value === null || !isLiteral(value)) return null;
  if (Array.isArray(value)) return value.filter(isLiteral) as Value;
  return type === 'number' && typeof value === 'string' ? Number(value) : (value as Value);
}
