import { expect, test } from 'vitest';
import { importsOf, nameOf, nodesOf } from './source.ts';

test.each([
  ["import { a } from './b.ts';", 'src/b.ts', false],
  ["import './b.ts';", 'src/b.ts', false],
  ["import type { A } from '../c/b.ts';", 'c/b.ts', true],
  ["import { type A } from './b.ts';", 'src/b.ts', false],
  ["export { a } from './b.ts';", 'src/b.ts', false],
  ["export * from './b.ts';", 'src/b.ts', false],
  ["export type { A } from './b.ts';", 'src/b.ts', true],
  ["export type * from './b.ts';", 'src/b.ts', true],
  ["type A = import('./b.ts').A;", 'src/b.ts', true],
  ["const a = await import('./b.ts');", 'src/b.ts', false],
  ["import { a } from '@scope/name/deep/file.js';", '@scope/name', false],
  ["import { a } from 'name/deep.js';", 'name', false],
  ["import { a } from 'node:fs/promises';", 'node:fs/promises', false],
])('%s imports %s, only types: %s', (text, target, typeOnly) => {
  expect(importsOf('src/a.ts', text)).toEqual([{ target, typeOnly }]);
});

test('a member is named with what it belongs to', () => {
  const names = nodesOf("Date.now(); globalThis['setTimeout'](f); a.b.c;").map(nameOf);
  expect(names).toEqual(expect.arrayContaining(['Date.now', 'globalThis.setTimeout', 'a.b.c', 'f']));
});
