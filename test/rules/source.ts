import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

export const root = dirname(dirname(import.meta.dirname));

const notOurs = new Set(['node_modules', 'dist']);

/** Paths of every file of the repository that we wrote, from its root, with `/`. */
export function ourFiles(folder = ''): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (entry.isFile()) return [path];
    return entry.isDirectory() && !entry.name.startsWith('.') && !notOurs.has(entry.name) ? ourFiles(path) : [];
  });
}

export const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');

export type SyntaxNode = { readonly type: string; readonly [field: string]: unknown };

const isNode = (value: unknown): value is SyntaxNode => typeof value === 'object' && value !== null && 'type' in value;

/** Every node of a TypeScript text, outermost first. */
export function nodesOf(text: string): readonly SyntaxNode[] {
  const within = (value: unknown): readonly SyntaxNode[] => {
    if (Array.isArray(value)) return value.flatMap(within);
    return isNode(value) ? [value, ...Object.values(value).flatMap(within)] : [];
  };
  return within(parseAst(text, { lang: 'ts' }));
}

/** What an expression is called: `Date.now` for a member, `setTimeout` for a name, `''` for anything else. */
export function nameOf(node: unknown): string {
  if (!isNode(node)) return '';
  if (node.type === 'Identifier') return String(node.name);
  if (node.type !== 'MemberExpression') return '';
  const property = node.computed ? (node.property as SyntaxNode).value : (node.property as SyntaxNode).name;
  return `${nameOf(node.object)}.${property}`;
}

export type Import = {
  /** A path of `ourFiles`, or the name of a package. */
  readonly target: string;
  /** Whether it is gone once the types are: Node keeps `import { type A } from 'b'` as an import of `b`. */
  readonly typeOnly: boolean;
};

/** Everything that a file imports or re-exports. */
export function importsOf(path: string, text = textOf(path)): readonly Import[] {
  return nodesOf(text).flatMap((node): Import[] => {
    const source = isNode(node.source) && node.source.type === 'Literal' ? node.source.value : undefined;
    if (typeof source !== 'string') return [];
    const typeOnly = node.importKind === 'type' || node.exportKind === 'type' || node.type === 'TSImportType';
    return [{ target: source.startsWith('.') ? posix.join(posix.dirname(path), source) : packageOf(source), typeOnly }];
  });
}

/** `@google-cloud/pubsub` of `@google-cloud/pubsub/build/x`; a module of Node as it is. */
const packageOf = (source: string): string => {
  const parts = source.split('/');
  return source.startsWith('node:') ? source : parts.slice(0, source.startsWith('@') ? 2 : 1).join('/');
};
