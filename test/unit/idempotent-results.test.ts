import { describe, expect, test } from 'vitest';
import { idempotentWorkers, working } from '../support/idempotent-workers.ts';

describe('the result of the first run', () => {
  const table = [{ a: [1, null, { b: 'x' }] }, [], 'text', '', 0, 1.5, true, false, null, undefined];
  test.each(table.map((result) => [JSON.stringify(result) ?? 'undefined', result] as const))('%s is given again', async (_, result) => {
    const { worker } = idempotentWorkers();
    const work = working(result);
    expect(await worker()('k', work)).toEqual(result);
    expect(await worker()('k', work)).toEqual(result);
    expect(work.runs).toBe(1);
  });

  test('what JSON changes comes as JSON has it', async () => {
    const { worker } = idempotentWorkers();
    const work = working({ at: new Date(0), none: undefined, odd: Number.NaN });
    await worker()('k', work);
    expect(await worker()('k', work)).toStrictEqual({ at: '1970-01-01T00:00:00.000Z', odd: null });
  });

  const circle: { self?: unknown } = {};
  circle.self = circle;
  test.each<[string, unknown, string]>([
    ['a circle', circle, 'form'],
    ['a BigInt', 7n, 'form'],
    ['a BigInt within', { id: 7n }, 'form'],
    ['a function', () => 1, 'form'],
    ['a symbol', Symbol('x'), 'form'],
    ['a text of 1 byte over the limit', 'x'.repeat(97), 'size'],
    ['a text of two-byte letters over the limit', 'é'.repeat(49), 'size'],
  ])('%s is given now, and not kept: with a warning, and undefined again', async (_, result, reason) => {
    const { worker, warnings } = idempotentWorkers({ options: { maxResultBytes: 100 } });
    const work = working(result);
    expect(await worker()('k', work)).toBe(result);
    expect(warnings).toEqual([[{ key: 'k', reason, limitBytes: 100 }, 'result not kept']]);
    expect(await worker()('k', work)).toBeUndefined();
    expect(warnings.at(-1)).toEqual([{ key: 'k' }, 'the first result was not kept']);
    expect(work.runs).toBe(1);
  });

  test('a text just within the limit is kept', async () => {
    const { worker, warnings } = idempotentWorkers({ options: { maxResultBytes: 100 } });
    await worker()('k', working('x'.repeat(96)));
    expect(await worker()('k', working())).toBe('x'.repeat(96));
    expect(warnings).toEqual([]);
  });
});

test('each outcome is counted', async () => {
  const { metered, counted } = idempotentWorkers();
  const idempotent = metered();
  await idempotent('a', working(1));
  await idempotent('a', working(1));
  await idempotent('a', working(1), 'other').catch(() => {});
  await idempotent('b', working(new Error('boom'))).catch(() => {});
  await idempotent('c', working(7n));
  expect(counted()).toEqual([
    'ptk.dedup.handled processed',
    'ptk.dedup.duplicates redelivery',
    'ptk.dedup.conflicts',
    'ptk.dedup.handled failed',
    'ptk.dedup.results_dropped form',
    'ptk.dedup.handled processed',
  ]);
});
