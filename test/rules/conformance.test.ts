import { describe, expect, test } from 'vitest';
import { embeddedOnly, production } from '../../scripts/conformance/explanations.ts';
import { callsIn, readNumberedTests } from '../../scripts/conformance/numbered-tests.ts';
import { readStatements, rewritten } from '../../scripts/conformance/statements.ts';
import { noteOf, readTable, renderTable } from '../../scripts/conformance/table.ts';
import { textOf } from './source.ts';

const statements = readStatements(textOf('docs/facts.md'));
const numbers = [...statements.keys()];
const tests = readNumberedTests();
const table = textOf('src/emulator/CONFORMANCE.md');
const rows = readTable(table);

describe('src/emulator/CONFORMANCE.md', () => {
  test('has the 96 statements in their order and words', () => {
    expect(numbers).toEqual(Array.from({ length: 96 }, (_, index) => index + 1));
    expect(rows.map(({ number, statement }) => [number, statement])).toEqual([...statements]);
  });

  test('is as it is written, with nothing by hand', () => {
    expect(renderTable(rows)).toBe(table);
  });

  test('has a test for each, which passes', () => {
    expect(numbers.filter((number) => !tests.has(number))).toEqual([]);
    expect([...tests.keys()].filter((number) => !statements.has(number))).toEqual([]);
    expect(rows.filter(({ embedded }) => embedded !== 'pass')).toEqual([]);
  });

  test('notes what the tests say about Google’s emulator', () => {
    expect(rows.map(({ number, note }) => [number, note])).toEqual(numbers.map((number) => [number, noteOf(number, tests.get(number))]));
  });

  test('says that Google’s emulator differs exactly where a test does', () => {
    const differing = numbers.filter((number) => tests.get(number)?.differs.length);
    expect(rows.filter(({ google }) => google === 'differs').map(({ number }) => number)).toEqual(differing);
  });

  test('explains every difference, and every test that was not put to Google’s emulator', () => {
    const differing = numbers.filter((number) => tests.get(number)?.differs.length);
    expect(Object.keys(production).map(Number)).toEqual(differing);
    const unasked = rows.filter(({ google }) => google === 'not applicable');
    expect(unasked.filter(({ note }) => note === '')).toEqual([]);
    expect(rows.filter(({ google }) => !['pass', 'differs', 'not applicable'].includes(google))).toEqual([]);
    expect(
      Object.keys(embeddedOnly)
        .map(Number)
        .filter((number) => !statements.has(number)),
    ).toEqual([]);
  });

  test('rewrites six statements at most', () => {
    expect(Object.keys(rewritten).length).toBeLessThanOrEqual(6);
  });
});

test.each([
  ["statement(target, 7, 'a', run);", { numbers: [7], differs: [], notApplicable: [] }],
  ["statement(target, 7, 'a', run, { differs: 'b' });", { numbers: [7], differs: ['b'], notApplicable: [] }],
  ["const c = { notApplicable: 'b' }; statement(target, 7, 'a', run, c);", { numbers: [7], differs: [], notApplicable: ['b'] }],
  ["const c = { differs: 'b' }; statement(target, 7, 'a', run, x ? c : undefined);", { numbers: [7], differs: ['b'], notApplicable: [] }],
  [
    "for (const { n, c } of [{ n: 7, c: { differs: 'b' } }, { n: 8, c: undefined }]) statement(target, n, 'a', run, c);",
    { numbers: [7, 8], differs: ['b'], notApplicable: [] },
  ],
  ["statementHere(7, 'a', run, { differs: 'b' });", { numbers: [7], differs: ['b'], notApplicable: [] }],
  ["test('G7: a', run);", { numbers: [7], differs: [], notApplicable: [] }],
  ['test.each([1])(`G7: a`, run);', { numbers: [7], differs: [], notApplicable: [] }],
])('%s is a test of a statement', (text, call) => {
  expect(callsIn(text)).toEqual([call]);
});

test.each(["test('a', run);", "it('about G7: a');", "stated(target, 7, 'a', run);"])('%s is none', (text) => {
  expect(callsIn(text)).toEqual([]);
});
