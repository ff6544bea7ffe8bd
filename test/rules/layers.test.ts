import { describe, expect, test } from 'vitest';
import { type Import, importsOf, ourFiles } from './source.ts';

/** From the inside out; the first that fits is the layer of a file. */
const layers = {
  core: /^src\/shared\/((context|errors|message|metrics|names|options|payload|ports|verdict|waiting|wire)|\w+\/(cursor|decide|due|lateness|ledger|options|results|store|subscription-check|task-body))\.ts$/,
  adapter: /^src\/shared\/adapters\//,
  transport: /^src\/shared\/transports\//,
  surface: /^src\/shared\/index\.ts$/,
  useCase: /^src\/shared\//,
  emulator: /^src\/emulator\//,
  testing: /^src\/testing\//,
  shell: /^(src\/shell|functions|appengine)\//,
  command: /^src\/cli\//,
} as const;
type Layer = keyof typeof layers;

/** What each layer may import beside packages; `type` before a layer allows its types alone. */
const allowed: Readonly<Record<Layer, readonly (Layer | `type ${Layer}`)[]>> = {
  core: ['core'],
  useCase: ['core', 'useCase'],
  adapter: ['core', 'adapter', 'type useCase'],
  transport: ['core', 'transport', 'type useCase'],
  surface: ['core', 'useCase', 'adapter', 'transport', 'surface'],
  emulator: ['emulator', 'type core'],
  testing: ['surface', 'adapter', 'emulator', 'testing'],
  shell: ['core', 'useCase', 'adapter', 'transport', 'shell'],
  command: ['core', 'useCase', 'adapter', 'transport', 'emulator', 'shell', 'command'],
};

const layerOf = (path: string) => (Object.keys(layers) as Layer[]).find((layer) => layers[layer].test(path));
const isOurs = (target: string) => /^(src|functions|appengine|test|scripts|bench|examples)\//.test(target);
const isNodes = (target: string) => target.startsWith('node:');

/** The credentials that a Cloud Tasks client takes are made by the gRPC package below it; JSON is plain data. */
const noSdks = new Set(['@grpc/grpc-js', 'canonicalize', 'json-p3']);

const files = ourFiles().filter((path) => path.endsWith('.ts') && layerOf(path) !== undefined);
const imports = new Map(files.map((path) => [path, importsOf(path)]));
const packagesOf = (path: string) => new Set((imports.get(path) ?? []).map(({ target }) => target).filter((target) => !isOurs(target)));

/** One line for each import that the rule forbids. */
function offences(layer: Layer, forbidden: (imported: Import, path: string) => boolean): string[] {
  return files
    .filter((path) => layerOf(path) === layer)
    .flatMap((path) =>
      (imports.get(path) ?? []).filter((imported) => forbidden(imported, path)).map(({ target }) => `${path} imports ${target}`),
    );
}

describe('imports', () => {
  test('every layer has files, so that no rule is about nothing', () => {
    for (const layer of Object.keys(layers)) expect(files.map(layerOf)).toContain(layer);
  });

  test.each(Object.keys(layers) as Layer[])('%s files import only the layers that they may', (layer) => {
    const mayImport = ({ target, typeOnly }: Import) => {
      const other = layerOf(target);
      return other !== undefined && (allowed[layer].includes(other) || (typeOnly && allowed[layer].includes(`type ${other}`)));
    };
    expect(offences(layer, (imported) => isOurs(imported.target) && !mayImport(imported))).toEqual([]);
  });

  test.each(['core', 'useCase', 'surface'] as const)('%s files import no package and of Node only the digest', (layer) => {
    expect(offences(layer, ({ target }) => !isOurs(target) && target !== 'node:crypto')).toEqual([]);
  });

  test('ports are types alone', () => {
    expect(offences('core', ({ typeOnly }, path) => path === 'src/shared/ports.ts' && !typeOnly)).toEqual([]);
  });

  test('an adapter and a transport know one SDK at most', () => {
    const several = files
      .filter((path) => ['adapter', 'transport'].includes(layerOf(path) ?? ''))
      .map((path) => [path, ...[...packagesOf(path)].filter((target) => !isNodes(target) && !noSdks.has(target))])
      .filter(([, ...sdks]) => sdks.length > 1);
    expect(several).toEqual([]);
  });

  test('the emulator shares the clock’s type with the library, and nothing else', () => {
    expect(offences('emulator', ({ target }) => target.startsWith('src/shared/') && target !== 'src/shared/ports.ts')).toEqual([]);
  });

  test('the emulator is built on gRPC and not on the clients that it stands in for', () => {
    expect(offences('emulator', ({ target, typeOnly }) => target.startsWith('@google-cloud/') && !typeOnly)).toEqual([]);
  });
});

/** Everything that is loaded with a file. */
function loadedWith(path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  for (const { target, typeOnly } of imports.get(path) ?? []) if (!typeOnly) loadedWith(target, seen);
  return seen;
}

test.each(['src/shared/index.ts', 'src/testing/doubles.ts', 'src/shared/transports/push.ts', 'src/shared/transports/pull.ts'])(
  '%s loads no package',
  (path) => {
    expect([...loadedWith(path)].filter((target) => !isOurs(target) && !isNodes(target))).toEqual([]);
  },
);
