import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { misfits } from '../hcl/fits-schema.ts';
import { lintRules } from '../hcl/lint.ts';
import { unresolved } from '../hcl/references.ts';
import { declaredIn, expressionsIn, labelledIn, readTree, type Tree, textsIn } from '../hcl/tree.ts';
import { nameless, untested } from '../hcl/untested.ts';
import { declaredNames } from '../rules/environment.ts';
import { type Definitions, endlessIn } from '../rules/indexes.ts';
import type { Check } from './check.ts';

/** What can be told of a folder of HCL without Terraform. */
export async function tierA(root: string): Promise<readonly Check[]> {
  const tree = await readTree(root);
  const check = (name: string, findings: readonly string[]): Check => ({ tier: 'A', name, findings });
  const each = (name: string, findingsOf: (module: Tree['modules'][number]) => readonly string[]) =>
    tree.modules.map((module) => check(`${module.folder}: ${name}`, findingsOf(module)));
  return [
    check(
      'every file is HCL',
      tree.unparsed.map(({ path, reason }) => `${path}: ${reason}`),
    ),
    ...each('every block fits the schema', (module) =>
      declaredIn(module).flatMap((declared) =>
        misfits(declared).map((reason) => `${declared.path}: ${declared.type}.${declared.name}: ${reason}`),
      ),
    ),
    ...each('every reference is to something', (module) => unresolved(module, tree)),
    ...lintRules.flatMap(({ name, findings }) => each(name, (module) => findings(module, tree))),
    check('tests and example values set variables that there are', strangeVariables(tree)),
    check('every validation, check and precondition is made to fail by a test', untested(tree)),
    check('every message of a validation names its variable', nameless(tree)),
    check('every environment name is one that the code declares', strangeNames(tree)),
    check('every collection whose records end has a TTL policy', endless(root)),
  ];
}

/** A tree of its own definitions is looked at; one without takes them from elsewhere. */
function endless(root: string): readonly string[] {
  const file = 'firestore.indexes.json';
  if (!existsSync(join(root, file))) return [];
  const definitions = JSON.parse(readFileSync(join(root, file), 'utf8')) as Definitions;
  return endlessIn(definitions).map((reason) => `${file}: ${reason}`);
}

function strangeVariables({ modules, tests, examples }: Tree): readonly string[] {
  const of = (folder: string) => {
    const module = modules.find((other) => other.folder === folder);
    return module ? new Set(labelledIn(module, 'variable').map(({ name }) => name)) : undefined;
  };
  const missing = (path: string, folder: string, names: readonly string[]) => {
    const known = of(folder);
    return known ? names.filter((name) => !known.has(name)).map((name) => `${path}: there is no variable ${name}`) : [];
  };
  const folderOf = (path: string) => path.replace(/(^|\/)(tests\/)?[^/]+$/, '') || '.';
  const blocks = (value: unknown): readonly Record<string, unknown>[] => (Array.isArray(value) ? value : []);
  return [
    ...examples.flatMap(({ path, configuration }) => missing(path, folderOf(path), Object.keys(configuration))),
    ...tests.flatMap(({ path, configuration }) => {
      const runs = Object.values((configuration.run ?? {}) as Record<string, unknown>).flatMap(blocks);
      // A run of another module has its variables.
      const own = runs.filter((run) => !('module' in run)).flatMap((run) => blocks(run.variables));
      return missing(path, folderOf(path), [...blocks(configuration.variables), ...own].flatMap(Object.keys));
    }),
  ];
}

/** `NAME = …` in an object of an expression, or a key of one. */
const given = /(?<![\w."$])([A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Z]{4,})\s*=(?![=>])/g;

function strangeNames({ modules }: Tree): readonly string[] {
  const names = modules.flatMap(({ files }) =>
    files.flatMap(({ path, configuration }) =>
      [
        ...textsIn(configuration).filter((text) => /^[A-Z][A-Z0-9_]{3,}$/.test(text) && isKey(configuration, text)),
        ...textsIn(configuration)
          .flatMap(expressionsIn)
          .flatMap((expression) => [...expression.matchAll(given)].map(([, name = '']) => name)),
      ].map((name) => ({ path, name })),
    ),
  );
  return [...new Set(names.filter(({ name }) => !declaredNames.has(name)).map(({ path, name }) => `${path}: no deployable reads ${name}`))];
}

/** Whether a text is the name of a member somewhere, and not only a value. */
function isKey(value: unknown, text: string): boolean {
  if (Array.isArray(value)) return value.some((inner) => isKey(inner, text));
  if (value === null || typeof value !== 'object') return false;
  return Object.hasOwn(value, text) || Object.values(value).some((inner) => isKey(inner, text));
}
