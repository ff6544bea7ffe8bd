import { describe, expect, test } from 'vitest';
import { nameOf, nodesOf, ourFiles, type SyntaxNode, textOf } from './source.ts';

/** Time, chance and settings come in as arguments; these are the machine's own. */
const machines = new Set(['setTimeout', 'setInterval', 'setImmediate', 'performance', 'process', 'crypto', 'globalThis']);
const members = new Set(['Date.now', 'Math.random', 'AbortSignal.timeout']);
const modules = /^(node:)?(timers|timers\/promises|process|os|perf_hooks)$/;
const chance = /^(random|getRandom)/;

/** What a TypeScript text takes from the machine. */
function takenFromMachine(text: string): string[] {
  const nodes = nodesOf(text);
  /** `b` of `a.b` and of `{ b: 1 }` names no global. */
  const labels = new Set(nodes.flatMap(({ computed, property, key }) => (computed ? [] : [property, key])));
  const isTaken = (node: SyntaxNode): boolean => {
    switch (node.type) {
      case 'Identifier':
        return !labels.has(node) && machines.has(nameOf(node));
      case 'MemberExpression':
        return members.has(nameOf(node));
      case 'NewExpression':
        return nameOf(node.callee) === 'Date' && Array.isArray(node.arguments) && node.arguments.length === 0;
      case 'CallExpression':
        return nameOf(node.callee) === 'Date';
      case 'ImportDeclaration':
        return modules.test(String((node.source as SyntaxNode).value));
      case 'ImportSpecifier':
        return chance.test(nameOf(node.imported));
      default:
        return false;
    }
  };
  return nodes.filter(isTaken).map((node) => text.slice(Number(node.start), Number(node.end)));
}

const offences = (folder: string, except: readonly string[]) =>
  ourFiles(folder)
    .filter((path) => path.endsWith('.ts') && !except.includes(path))
    .flatMap((path) => takenFromMachine(textOf(path)).map((what) => `${path} uses ${what}`));

describe('time, chance and environment', () => {
  test('come into the library as arguments; only adapters/system.ts asks the machine', () => {
    expect(offences('src/shared', ['src/shared/adapters/system.ts'])).toEqual([]);
    expect(takenFromMachine(textOf('src/shared/adapters/system.ts'))).not.toEqual([]);
  });

  test('of the emulator are its Time; ids that it gives, and when the event loop turns, are the machine’s', () => {
    const withIds = ['firestore/transactions', 'firestore/write-methods', 'pubsub/snapshots'];
    expect(
      offences(
        'src/emulator',
        ['time', 'journal', ...withIds].map((file) => `src/emulator/${file}.ts`),
      ),
    ).toEqual([]);
  });

  test.each([
    'Date.now();',
    'const f = Date.now;',
    "const f = Date['now'];",
    'const wait = setTimeout;',
    'const { env } = process;',
    'f({ setTimeout });',
    'new Date();',
    'Date();',
    'performance.now();',
    'setTimeout(f, 1);',
    'globalThis.setTimeout(f, 1);',
    'setInterval(f, 1);',
    'setImmediate(f);',
    'AbortSignal.timeout(1);',
    'Math.random();',
    'process.env.A;',
    'process.hrtime.bigint();',
    'crypto.randomUUID();',
    "import { randomUUID } from 'node:crypto';",
    "import { randomBytes as bytes } from 'node:crypto';",
    "import { setTimeout as wait } from 'node:timers/promises';",
    "import process from 'node:process';",
  ])('%s is found', (text) => {
    expect(takenFromMachine(text)).not.toEqual([]);
  });

  test.each([
    'new Date(0);',
    'Date.parse(a);',
    'Date.UTC(2026, 0);',
    'clock.setTimeout(f);',
    'const a = { process: 1 };',
    "import { createHash } from 'node:crypto';",
    'AbortSignal.any([a]);',
  ])('%s is let through', (text) => {
    expect(takenFromMachine(text)).toEqual([]);
  });
});
