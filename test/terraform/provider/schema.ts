import { readFileSync } from 'node:fs';

export type Primitive = 'string' | 'number' | 'bool';
/** As Terraform writes a type in JSON. */
export type AttributeType =
  | Primitive
  | readonly ['list' | 'set' | 'map', Primitive]
  | readonly ['list' | 'set', readonly ['object', Readonly<Record<string, unknown>>]];

export type Attribute = {
  readonly type: AttributeType;
  readonly required: boolean;
  readonly optional: boolean;
  /** Filled in by the service where the configuration has none; without `optional` it cannot be set at all. */
  readonly computed: boolean;
  readonly sensitive: boolean;
};
export type NestedBlock = {
  readonly nesting: 'single' | 'list' | 'set';
  readonly min: number;
  readonly max: number;
  readonly block: Block;
};
export type Block = { readonly attributes: ReadonlyMap<string, Attribute>; readonly blocks: ReadonlyMap<string, NestedBlock> };

/**
 * How `google-schema.json` writes a member: `"string required"`, `{ "block": "list 0..1", "of": … }`, or for a list of objects that only the
 * service fills `{ "computed": "list", "of": … }`.
 */
type KeptMember =
  | string
  | { readonly block: string; readonly of: KeptBlock }
  | { readonly computed: 'list' | 'set'; readonly of: KeptBlock };
type KeptBlock = { readonly [name: string]: KeptMember };
type Kept = {
  readonly provider: KeptBlock;
  readonly data: Readonly<Record<string, KeptBlock>>;
  readonly resources: Readonly<Record<string, KeptBlock>>;
};

export type Schema = {
  readonly provider: Block;
  readonly data: ReadonlyMap<string, Block>;
  readonly resources: ReadonlyMap<string, Block>;
};

/** What hashicorp/google 7.0 takes and gives, as far as this project may use it. */
export const googleSchema: Schema = readSchema(JSON.parse(readFileSync(new URL('./google-schema.json', import.meta.url), 'utf8')));

/** @throws Error that names the member which is not written as it must be */
export function readSchema({ provider, data, resources }: Kept): Schema {
  const all = (blocks: Readonly<Record<string, KeptBlock>>) =>
    new Map(Object.entries(blocks).map(([type, kept]) => [type, readBlock(kept, type)]));
  return { provider: readBlock(provider, 'provider'), data: all(data), resources: all(resources) };
}

function readBlock(kept: KeptBlock, path: string): Block {
  const attributes = new Map<string, Attribute>();
  const blocks = new Map<string, NestedBlock>();
  for (const [name, member] of Object.entries(kept)) {
    const at = `${path}.${name}`;
    if (typeof member === 'string') attributes.set(name, readAttribute(member, at));
    else if ('block' in member) blocks.set(name, readNested(member.block, readBlock(member.of, at), at));
    else attributes.set(name, computedList(member.computed, readBlock(member.of, at)));
  }
  return { attributes, blocks };
}

function readAttribute(text: string, path: string): Attribute {
  const [, type = '', words = ''] = /^(\S+)((?: required| optional| computed| sensitive)+)$/.exec(text) ?? [];
  const [, collection, element] = /^(list|set|map)\((string|number|bool)\)$/.exec(type) ?? [];
  if (!collection && !/^(string|number|bool)$/.test(type)) throw new Error(`${path} is written "${text}"`);
  const says = (word: string) => words.includes(word);
  return {
    type: collection ? ([collection, element] as unknown as AttributeType) : (type as Primitive),
    required: says('required'),
    optional: says('optional'),
    computed: says('computed'),
    sensitive: says('sensitive'),
  };
}

function computedList(collection: 'list' | 'set', block: Block): Attribute {
  const members = Object.fromEntries([...block.attributes].map(([name, { type }]) => [name, type]));
  return { type: [collection, ['object', members]], required: false, optional: false, computed: true, sensitive: false };
}

function readNested(text: string, block: Block, path: string): NestedBlock {
  const [, nesting, min, max] = /^(single|list|set) (\d+)\.\.(\d+|\*)$/.exec(text) ?? [];
  if (!nesting) throw new Error(`${path} is written "${text}"`);
  return {
    nesting: nesting as NestedBlock['nesting'],
    min: Number(min),
    max: max === '*' ? Number.POSITIVE_INFINITY : Number(max),
    block,
  };
}
