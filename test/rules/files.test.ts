import { describe, expect, test } from 'vitest';
import { nameOf, nodesOf, ourFiles, textOf } from './source.ts';

const files = ourFiles();
const typescript = files.filter((path) => path.endsWith('.ts'));
const longest = 250;

const vague = /(^|\/)(utils?|helpers?|common|types|misc)(\/|\.[^/]*$)/;
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.config|\.d)?\.ts$/;

/** Calls by which a test is left out or waits: `test.only(…)`, `describe.skip.each(…)(…)`, `setTimeout(…)`. */
function forbiddenCalls(text: string): string[] {
  return nodesOf(text)
    .filter(({ type }) => type === 'CallExpression')
    .map(({ callee }) => nameOf(callee))
    .filter((name) => /^(test|it|describe|suite)\..*?(only|skip)(\.|$)|(^|\.)setTimeout$/.test(name));
}

describe('files', () => {
  test(`have ${longest} lines at most`, () => {
    const linesOf = (path: string) => textOf(path).trimEnd().split('\n').length;
    const long = typescript.filter((path) => linesOf(path) > longest).map((path) => `${path} has ${linesOf(path)} lines`);
    expect(long).toEqual([]);
    expect(typescript.length).toBeGreaterThan(100);
  });

  test('are named by what they mean', () => {
    expect(files.filter((path) => vague.test(path))).toEqual([]);
    expect(['src/utils.ts', 'src/shared/types/a.ts', 'test/helpers.test.ts', 'common/a.ts'].filter((path) => !vague.test(path))).toEqual(
      [],
    );
    expect(['src/type-script.ts', 'src/commonly.ts'].filter((path) => vague.test(path))).toEqual([]);
  });

  test('have names in kebab case', () => {
    expect(typescript.filter((path) => !kebabCase.test(path.replace(/^.*\//, '')))).toEqual([]);
  });
});

describe('tests', () => {
  test('are all run, and none sleeps', () => {
    const tests = typescript.filter((path) => path.startsWith('test/') && path.endsWith('.test.ts'));
    expect(tests.flatMap((path) => forbiddenCalls(textOf(path)).map((call) => `${path} calls ${call}`))).toEqual([]);
  });

  test.each([
    "test.only('a', f);",
    "describe.skip('a', f);",
    "test.skip.each([1])('a', f);",
    'setTimeout(f, 1);',
    'globalThis.setTimeout(f, 1);',
  ])('%s is found', (text) => {
    expect(forbiddenCalls(text)).toHaveLength(1);
  });

  test.each(["test('a', f);", "test.each([1])('a', f);", 'only(f);', 'messages.skip;', "commands().skip('s', 1);"])(
    '%s is let through',
    (text) => {
      expect(forbiddenCalls(text)).toEqual([]);
    },
  );
});
