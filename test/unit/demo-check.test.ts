import { describe, expect, test } from 'vitest';
import { checkEffects, type Effect } from '../../src/cli/demo/check.ts';

/** An effect of stream `s`, committed at the given ms. */
const effect = (key: string, seq: number, committedMs: number, change: Partial<Effect> = {}): Effect => ({
  key,
  stream: 's',
  seq,
  dueMs: 0,
  committedAt: { seconds: Math.floor(committedMs / 1_000), nanoseconds: (committedMs % 1_000) * 1_000_000 },
  ...change,
});
const clean = { lost: 0, doubled: 0, outOfOrder: 0, early: 0 };

describe('checkEffects', () => {
  test('finds nothing where every message had its effect once, in order and in time', () => {
    expect(checkEffects(['a', 'b'], [effect('a', 1, 1_000), effect('b', 2, 1_001)])).toEqual({ effects: 2, ...clean });
  });

  test('finds a lost message', () => {
    expect(checkEffects(['a', 'b', 'c'], [effect('b', 1, 1_000)])).toEqual({ effects: 1, ...clean, lost: 2 });
  });

  test('finds each effect too many', () => {
    const effects = [effect('a', 1, 1_000), effect('a', 1, 1_001), effect('a', 1, 1_002)];
    expect(checkEffects(['a'], effects)).toEqual({ effects: 3, ...clean, doubled: 2 });
  });

  test('finds a lower number after a higher one', () => {
    const effects = [effect('a', 1, 1_000), effect('c', 3, 1_001), effect('b', 2, 1_002)];
    expect(checkEffects(['a', 'b', 'c'], effects)).toEqual({ effects: 3, ...clean, outOfOrder: 1 });
  });

  test('goes by the time of commit, to the nanosecond, and not by the order of the list', () => {
    const at = (nanoseconds: number) => ({ committedAt: { seconds: 1, nanoseconds } });
    expect(checkEffects(['a', 'b'], [effect('b', 2, 0, at(2)), effect('a', 1, 0, at(1))])).toEqual({ effects: 2, ...clean });
    expect(checkEffects(['a', 'b'], [effect('b', 2, 0, at(1)), effect('a', 1, 0, at(2))]).outOfOrder).toBe(1);
  });

  test('compares numbers within a stream only, and none where there is no stream', () => {
    const effects = [
      effect('a', 2, 1_000),
      effect('b', 1, 1_001, { stream: 't' }),
      effect('c', 9, 1_002, { stream: '' }),
      effect('d', 0, 1_003, { stream: '' }),
    ];
    expect(checkEffects(['a', 'b', 'c', 'd'], effects)).toEqual({ effects: 4, ...clean });
  });

  test.each([
    [5_000, 4_999, 1],
    [5_000, 5_000, 0],
    [0, 1, 0],
  ])('due at %d ms and committed at %d ms: %d early', (dueMs, committedMs, early) => {
    expect(checkEffects(['a'], [effect('a', 1, committedMs, { dueMs })])).toEqual({ effects: 1, ...clean, early });
  });
});
