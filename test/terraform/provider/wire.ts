import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';
import type { Block } from './schema.ts';

const text = readFileSync(new URL('./tfplugin5.proto', import.meta.url), 'utf8');

/** Terraform's protocol, as far as `tfplugin5.proto` has it. */
export const protos: protobuf.Root = protobuf.parse(text, new protobuf.Root()).root;

export const schemaMessage = (block: Block): object => ({ version: 0, block: blockMessage(block) });

function blockMessage({ attributes, blocks }: Block): object {
  return {
    version: 0,
    attributes: [...attributes].map(([name, { type, ...flags }]) => ({ name, type: Buffer.from(JSON.stringify(type)), ...flags })),
    blockTypes: [...blocks].map(([typeName, { nesting, min, max, block }]) => ({
      typeName,
      nesting: nesting.toUpperCase(),
      // A single block is there or not; Terraform counts none.
      minItems: nesting === 'single' ? 0 : min,
      maxItems: nesting === 'single' || max === Number.POSITIVE_INFINITY ? 0 : max,
      block: blockMessage(block),
    })),
  };
}
