import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { parse } from '@cdktf/hcl2json';

/** The content of a block: an attribute's literal, an expression as `"${…}"`, or for each block of a name a list of them. */
export type Body = { readonly [name: string]: unknown };
type Labelled = Readonly<Record<string, readonly Body[]>>;

/** One file as hcl2json has it. */
export type Configuration = {
  readonly terraform?: readonly Body[];
  readonly provider?: Labelled;
  readonly variable?: Labelled;
  readonly output?: Labelled;
  readonly locals?: readonly Body[];
  readonly module?: Labelled;
  readonly resource?: Readonly<Record<string, Labelled>>;
  readonly data?: Readonly<Record<string, Labelled>>;
  readonly [other: string]: unknown;
};

export type File = { readonly path: string; readonly configuration: Configuration };
/** A file that is no HCL, with what the parser says. */
export type Unparsed = { readonly path: string; readonly reason: string };
/** A folder of `.tf` files: what Terraform calls a module. */
export type Module = { readonly folder: string; readonly files: readonly File[] };
export type Tree = {
  readonly modules: readonly Module[];
  readonly tests: readonly File[];
  readonly examples: readonly File[];
  readonly unparsed: readonly Unparsed[];
};

/** Every HCL file below a folder; paths are from there, with `/`. */
export async function readTree(root: string): Promise<Tree> {
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(tf|tftest\.hcl|tfvars\.example|tfvars)$/.test(path) && !path.includes('.terraform/'))
    .sort();
  const unparsed: Unparsed[] = [];
  const files: File[] = [];
  for (const path of paths) {
    try {
      // The parser must see a name that it knows the syntax of.
      const name = path.endsWith('.tf') ? path : `${path}.tf`;
      files.push({ path, configuration: (await parse(name, readFileSync(join(root, path), 'utf8'))) as Configuration });
    } catch (error) {
      unparsed.push({ path, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  const folders = new Set(files.filter(({ path }) => path.endsWith('.tf')).map(({ path }) => posix.dirname(path)));
  const modules = [...folders].map((folder) => ({
    folder,
    files: files.filter(({ path }) => path.endsWith('.tf') && dirname(path) === folder),
  }));
  const ending = (end: string) => files.filter(({ path }) => path.endsWith(end));
  return { modules, tests: ending('.tftest.hcl'), examples: [...ending('.tfvars'), ...ending('.tfvars.example')], unparsed };
}

export type Declared = {
  readonly kind: 'resource' | 'data';
  readonly type: string;
  readonly name: string;
  readonly path: string;
  readonly body: Body;
};

/** The resources and data sources of a module, in the order of its files. */
export const declaredIn = ({ files }: Module): readonly Declared[] =>
  files.flatMap(({ path, configuration }) =>
    (['resource', 'data'] as const).flatMap((kind) =>
      Object.entries(configuration[kind] ?? {}).flatMap(([type, named]) =>
        Object.entries(named).flatMap(([name, bodies]) => bodies.map((body) => ({ kind, type, name, path, body }))),
      ),
    ),
  );

/** The blocks of a labelled kind in a module: `variable`, `output`, `module`, `provider`. */
export const labelledIn = ({ files }: Module, kind: 'variable' | 'output' | 'module' | 'provider') =>
  files.flatMap(({ path, configuration }) =>
    Object.entries(configuration[kind] ?? {}).flatMap(([name, bodies]) => bodies.map((body) => ({ name, path, body }))),
  );

export const localsOf = ({ files }: Module): readonly string[] =>
  files.flatMap(({ configuration }) => (configuration.locals ?? []).flatMap(Object.keys));

/** Every text in a value, keys of objects too. */
export function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, inner]) => [name, ...textsIn(inner)]);
}

/** What stands between `${` and its `}` in a text; `$${` begins none. */
export function expressionsIn(text: string): readonly string[] {
  const found: string[] = [];
  for (let at = text.indexOf('${'); at !== -1; at = text.indexOf('${', at + 2)) {
    if (text[at - 1] === '$') continue;
    let depth = 1;
    let end = at + 2;
    while (end < text.length && depth > 0) {
      if (text[end] === '{') depth += 1;
      if (text[end] === '}') depth -= 1;
      end += 1;
    }
    found.push(text.slice(at + 2, end - 1));
    at = end - 2;
  }
  return found;
}

/** Whether a value is known from the text alone. */
export const isLiteral = (value: unknown): boolean => !(typeof value === 'string' && /(^|[^$])[$%]\{/.test(value));
