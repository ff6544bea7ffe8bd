import { posix } from 'node:path';
import { type Block, googleSchema } from '../provider/schema.ts';
import { declaredIn, expressionsIn, labelledIn, localsOf, type Module, type Tree, textsIn } from './tree.ts';

/** Every expression of a module, but for old names in `moved` and `removed`. */
function expressionsOf({ files }: Module): readonly { readonly path: string; readonly expression: string }[] {
  return files.flatMap(({ path, configuration: { moved: _, removed: __, ...rest } }) =>
    textsIn(rest)
      .flatMap(expressionsIn)
      .map((expression) => ({ path, expression })),
  );
}

const index = String.raw`(?:\[[^\]]*\])?`;
const patterns = {
  variable: /(?<![\w.])var\.([\w-]+)/g,
  local: /(?<![\w.])local\.([\w-]+)/g,
  module: new RegExp(String.raw`(?<![\w.])module\.([\w-]+)${index}(?:\.([\w-]+))?`, 'g'),
  resource: new RegExp(String.raw`(?<![\w."/])(data\.)?(google_\w+)\.([\w-]+)${index}(?:\.([\w-]+))?`, 'g'),
};

export type Used = { readonly variables: ReadonlySet<string>; readonly locals: ReadonlySet<string> };

/** The variables and locals that a module uses. */
export function usedIn(module: Module): Used {
  const found = (pattern: RegExp) =>
    new Set(expressionsOf(module).flatMap(({ expression }) => [...expression.matchAll(pattern)].map(([, name = '']) => name)));
  return { variables: found(patterns.variable), locals: found(patterns.local) };
}

/** Names that nothing of the module declares, calls with what the called module does not take, and outputs that it does not have. */
export function unresolved(module: Module, { modules }: Tree): readonly string[] {
  const variables = new Set(labelledIn(module, 'variable').map(({ name }) => name));
  const locals = new Set(localsOf(module));
  const calls = new Map(
    labelledIn(module, 'module').map(({ name, path, body }) => [name, { path, body, called: calledBy(module, body.source, modules) }]),
  );
  const declared = declaredIn(module);
  const references = expressionsOf(module).flatMap(({ path, expression }) => {
    const all = (pattern: RegExp) => [...expression.matchAll(pattern)];
    return [
      ...all(patterns.variable).flatMap(([, name = '']) => (variables.has(name) ? [] : [`var.${name}`])),
      ...all(patterns.local).flatMap(([, name = '']) => (locals.has(name) ? [] : [`local.${name}`])),
      ...all(patterns.module).flatMap(([, name = '', output]) => {
        const call = calls.get(name);
        if (!call) return [`module.${name}`];
        const isThere = !output || !call.called || labelledIn(call.called, 'output').some((other) => other.name === output);
        return isThere ? [] : [`module.${name}.${output}`];
      }),
      ...all(patterns.resource).flatMap(([, data, type = '', name = '', member]) => {
        const kind = data ? 'data' : 'resource';
        const address = `${data ?? ''}${type}.${name}`;
        if (!declared.some((other) => other.kind === kind && other.type === type && other.name === name)) return [address];
        const block = googleSchema[data ? 'data' : 'resources'].get(type);
        return !member || !block || hasMember(block, member) ? [] : [`${address}.${member}`];
      }),
    ].map((reference) => `${path}: there is no ${reference}`);
  });
  return [...new Set([...references, ...[...calls].flatMap(([name, call]) => misfitsOfCall(name, call))])];
}

const hasMember = ({ attributes, blocks }: Block, name: string): boolean => attributes.has(name) || blocks.has(name);

const calledBy = ({ folder }: Module, source: unknown, modules: readonly Module[]): Module | undefined =>
  modules.find(
    (other) => typeof source === 'string' && /^\.\.?\//.test(source) && posix.join(folder, source).replace(/\/$/, '') === other.folder,
  );

/** Arguments of a module call that Terraform itself takes. */
const meta = new Set(['source', 'version', 'count', 'for_each', 'depends_on', 'providers']);

type Call = { readonly path: string; readonly body: Readonly<Record<string, unknown>>; readonly called: Module | undefined };

function misfitsOfCall(name: string, { path, body, called }: Call): readonly string[] {
  if (!called) return [`${path}: module.${name} is called from ${JSON.stringify(body.source)}, which is no module here`];
  const variables = labelledIn(called, 'variable');
  const given = Object.keys(body).filter((argument) => !meta.has(argument));
  const unknown = given.filter((argument) => !variables.some((variable) => variable.name === argument));
  const missing = variables.filter((variable) => !('default' in variable.body) && !given.includes(variable.name));
  return [
    ...unknown.map((argument) => `${path}: module.${name} takes no ${argument}`),
    ...missing.map((variable) => `${path}: module.${name} needs ${variable.name}`),
  ];
}
