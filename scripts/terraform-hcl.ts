import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from '@cdktf/hcl2json';

export type Body = Readonly<Record<string, unknown>>;
type Blocks = Readonly<Record<string, readonly Body[]>>;
export type Configuration = {
  readonly resource?: Readonly<Record<string, Blocks>>;
  readonly module?: Blocks;
  readonly variable?: Blocks;
  readonly output?: Blocks;
  readonly locals?: readonly Body[];
};

export const terraformFolder = fileURLToPath(new URL('../terraform/', import.meta.url));

/** Every `.tf` file of the root and its modules, without the examples, by its path below `terraform/`. */
export async function readConfigurations(folder = terraformFolder): Promise<ReadonlyMap<string, Configuration>> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.tf') && !file.startsWith('examples'))
    .sort();
  const parsed = files.map(async (file) => [file, await parse(file, readFileSync(join(folder, file), 'utf8'))] as const);
  return new Map(await Promise.all(parsed));
}

/** The resources of a type, or of all that its name matches, each with its folder (`.` for the root), type and name. */
export function resourcesOf(configurations: ReadonlyMap<string, Configuration>, type: RegExp) {
  return [...configurations].flatMap(([file, { resource = {} }]) =>
    Object.entries(resource)
      .filter(([name]) => type.test(name))
      .flatMap(([kind, blocks]) =>
        Object.entries(blocks).flatMap(([name, bodies]) =>
          bodies.map((body) => ({ folder: file.includes('/') ? file.replace(/\/[^/]+$/, '') : '.', type: kind, name, body })),
        ),
      ),
  );
}
