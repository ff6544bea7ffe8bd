import { describe, expect, test } from 'vitest';
import { dedupOptions, versionedOptions } from '../../src/shared/dedup/options.ts';
import { delayOptions } from '../../src/shared/delay/options.ts';
import { errorCodes } from '../../src/shared/errors.ts';
import { fifoOptions } from '../../src/shared/fifo/options.ts';
import { metrics } from '../../src/shared/metrics.ts';
import type { OptionTable } from '../../src/shared/options.ts';
import { outboxOptions } from '../../src/shared/outbox/options.ts';
import { pullOptions } from '../../src/shared/transports/pull-options.ts';
import { settings } from '../../src/shell/settings.ts';
import { ourFiles, textOf } from './source.ts';

const readme = textOf('README.md');
/** The tables' rows by the name in backticks with which each begins. */
const rows = new Map([...readme.matchAll(/^\| *`([^`]+)` *\| *(.*?) *\|$/gm)].map(([, name = '', cell = '']) => [name, cell]));
const tables: readonly (readonly [path: string, table: OptionTable])[] = [
  ['src/shared/dedup/options.ts', dedupOptions],
  ['src/shared/dedup/options.ts', versionedOptions],
  ['src/shared/delay/options.ts', delayOptions],
  ['src/shared/fifo/options.ts', fifoOptions],
  ['src/shared/outbox/options.ts', outboxOptions],
  ['src/shared/transports/pull-options.ts', pullOptions],
];
const options = tables.flatMap(([, table]) => Object.entries(table));
const missing = (names: readonly string[]) => names.filter((name) => !rows.has(name));

describe('README.md', () => {
  test('has a row for every error code, which says where a message ends as a dead letter', () => {
    expect(missing(Object.keys(errorCodes))).toEqual([]);
    for (const [code, { fate }] of Object.entries(errorCodes))
      expect([code, /^dead letter/.test(rows.get(code) ?? '')]).toEqual([code, fate === 'deadLetter']);
  });

  test('has a row for every setting', () => {
    expect(missing(Object.keys(settings))).toEqual([]);
  });

  test('has a row for every option, with its sentence, default and range', () => {
    expect(missing(options.map(([, { env }]) => env))).toEqual([]);
    for (const [name, { env, about, default: value, min, max }] of options)
      expect(rows.get(env)).toBe(`\`${name}\`: ${about} Default ${value}, from ${min} to ${max}.`);
  });

  test('has a row for every number that is given out', () => {
    for (const [name, { about }] of Object.entries(metrics)) expect([name, rows.get(name)]).toEqual([name, about]);
  });

  test('has no row for a variable or an error code that there is not', () => {
    const known = new Set<string>([...Object.keys(errorCodes), ...Object.keys(settings), ...options.map(([, { env }]) => env)]);
    expect([...rows.keys()].filter((name) => /^[A-Z][A-Z0-9_]+$/.test(name) && !known.has(name))).toEqual([]);
  });

  test('is compared with every option table that there is', () => {
    expect(ourFiles('src/shared').filter((path) => /options\.ts$/.test(path) && path !== 'src/shared/options.ts')).toEqual([
      ...new Set(tables.map(([path]) => path)),
    ]);
  });

  test('names no file that is not there', () => {
    const files = new Set(ourFiles());
    const named = [...readme.matchAll(/`((?:src|test|functions|appengine|terraform|docs|examples|scripts)\/[\w./-]+\.\w+)`/g)];
    expect(named.flatMap(([, path = '']) => (files.has(path) ? [] : [path]))).toEqual([]);
  });
});
