import { describe, expect, test } from 'vitest';
import {
  type DelayPlan,
  hopsOf,
  instructionKey,
  ledgerTaskId,
  nextHop,
  type PlanRules,
  planDelay,
  queueOf,
  queuesFor,
  taskId,
} from '../../src/shared/delay/decide.ts';

/** The first of January 2026. */
const publishTimeMs = 1_767_225_600_000;
const day = 86_400_000;
const rules: PlanRules = { defaultMs: 0, holdMs: 250, isLedgered: false };
const delayed = (delayMs: number) => ({ 'ptk-delay-ms': String(delayMs) });
/** A plan for a task, so many ms after the publish time. */
const task = (dueMs: number, scheduledForMs = dueMs, instruction = `after ${dueMs}`): DelayPlan => ({
  kind: 'task',
  dueAtMs: publishTimeMs + dueMs,
  scheduledForMs: publishTimeMs + scheduledForMs,
  instruction,
});

describe('planDelay', () => {
  test.each<[string, Record<string, string>, Partial<PlanRules>, DelayPlan]>([
    ['no due time', {}, {}, { kind: 'now' }],
    ['a due time in the past', { 'ptk-deliver-at': '2020-10-08T15:01:23Z' }, {}, { kind: 'now' }],
    ['the publish time itself', delayed(0), {}, { kind: 'now' }],
    ['1 ms', delayed(1), {}, { kind: 'hold', forMs: 1 }],
    ['249 ms', delayed(249), {}, { kind: 'hold', forMs: 249 }],
    ['250 ms, as long as it may hold', delayed(250), {}, { kind: 'hold', forMs: 250 }],
    ['251 ms', delayed(251), {}, task(251)],
    ['1 ms and no hold', delayed(1), { holdMs: 0 }, task(1)],
    ['5,000 ms and a hold of them', delayed(5_000), { holdMs: 5_000 }, { kind: 'hold', forMs: 5_000 }],
    ['5,001 ms and a hold of 5,000', delayed(5_001), { holdMs: 5_000 }, task(5_001)],
    ['25 days', delayed(25 * day), {}, task(25 * day)],
    ['25 days and 1 ms', delayed(25 * day + 1), {}, task(25 * day + 1, 25 * day)],
    ['400 days', delayed(400 * day), {}, task(400 * day, 25 * day)],
    ['a default of 250 ms', {}, { defaultMs: 250 }, { kind: 'hold', forMs: 250 }],
    ['a default of 251 ms', {}, { defaultMs: 251 }, task(251)],
    ['a default beside the publish time', delayed(0), { defaultMs: 5_000 }, { kind: 'now' }],
    ['a default beside a delay', delayed(7_000), { defaultMs: 5_000 }, task(7_000)],
  ])('%s', (_, attributes, given, plan) => {
    expect(planDelay({ attributes, publishTimeMs }, 0, { ...rules, ...given })).toEqual(plan);
  });

  test.each<[string, Record<string, string>, Partial<PlanRules>, DelayPlan]>([
    ['no due time', {}, {}, task(0, 0, 'now')],
    ['the publish time itself', delayed(0), {}, task(0)],
    ['1 ms', delayed(1), {}, task(1)],
    ['250 ms', delayed(250), {}, task(250)],
    ['25 days and 1 ms', delayed(25 * day + 1), {}, task(25 * day + 1, 25 * day)],
    ['a default', {}, { defaultMs: 5_000 }, task(5_000)],
    ['a due time in the past', { 'ptk-deliver-at': '2025-12-31T23:59:59Z' }, {}, task(-1_000, -1_000, 'at 2025-12-31T23:59:59Z')],
  ])('with the ledger there is a task, with %s too', (_, attributes, given, plan) => {
    expect(planDelay({ attributes, publishTimeMs }, 0, { ...rules, ...given, isLedgered: true })).toEqual(plan);
  });

  test('without a publish time nothing is due now or held, and the first hop begins at receipt', () => {
    const plan = (text: string, isLedgered = false) =>
      planDelay({ attributes: { 'ptk-deliver-at': text }, publishTimeMs: undefined }, publishTimeMs, { ...rules, isLedgered });
    expect(plan('2026-01-01T00:00:00Z')).toEqual(task(0, 0, 'at 2026-01-01T00:00:00Z'));
    expect(plan('2026-01-01T00:00:00.100Z')).toEqual(task(100, 100, 'at 2026-01-01T00:00:00.100Z'));
    expect(plan('2027-01-01T00:00:00Z')).toEqual(task(365 * day, 25 * day, 'at 2027-01-01T00:00:00Z'));
    expect(plan('2027-01-01T00:00:00Z', true)).toEqual(task(365 * day, 25 * day, 'at 2027-01-01T00:00:00Z'));
  });

  test('the clock of the function changes nothing where there is a publish time', () => {
    const plan = (aheadMs: number) => planDelay({ attributes: delayed(60_000), publishTimeMs }, publishTimeMs + aheadMs, rules);
    expect([plan(-60_000), plan(60_000)]).toEqual([task(60_000), task(60_000)]);
  });
});

describe('hops', () => {
  test.each([
    [0, 60, 25],
    [25, 60, 50],
    [50, 60, 60],
    [0, 25, 25],
    [60, 60, 60],
    [0, -1, -1],
  ])('after one at day %i of %i comes one at day %i', (hopDay, dueDay, nextDay) => {
    expect(nextHop(publishTimeMs + hopDay * day, publishTimeMs + dueDay * day)).toBe(publishTimeMs + nextDay * day);
  });

  test.each([
    [-5, 1],
    [0, 1],
    [1, 1],
    [25 * day, 1],
    [25 * day + 1, 2],
    [50 * day, 2],
    [50 * day + 1, 3],
    [400 * day, 16],
  ])('a wait of %i ms is made of %i', (waitMs, hops) => {
    expect(hopsOf(publishTimeMs, publishTimeMs + waitMs)).toBe(hops);
  });
});

describe('names', () => {
  const identity = { source: 's', key: 'k', instruction: 'after 5', delayCount: '0', hop: 1 };

  test('are 64 hex digits, the same for the same thing', () => {
    expect(taskId(identity)).toBe('0936d0da1b95bf12c570914b40cb4f3ce44c381bd568eea438061e67c32de82c');
    expect(ledgerTaskId({ incarnation: 'i', generation: 1 }, 1)).toBe('d7e96b10555615b316825576809451ab896d8aecd1c4b8f4c9750ae269253500');
    expect(instructionKey('k', 'after 5', '0')).toBe('7687f5f7b53940f435158b8e947129ba0b83c5d246f75b7e06a68ee63da41111');
  });

  test.each([
    { source: 't' },
    { key: 'l' },
    { instruction: 'after 6' },
    { instruction: 'at 5' },
    { delayCount: '1' },
    { hop: 2 },
    { source: 's","k', key: '' },
  ])('of a task differ with %j', (change) => {
    expect(taskId({ ...identity, ...change })).not.toBe(taskId(identity));
  });

  test('of an entry’s tasks differ by incarnation, generation and hop', () => {
    const names = ['i', 'j'].flatMap((incarnation) =>
      [1, 2, 11].flatMap((generation) => [1, 2, 11].map((hop) => ledgerTaskId({ incarnation, generation }, hop))),
    );
    expect(new Set(names).size).toBe(18);
  });

  test('of instructions differ by key, words and how often the message was delayed', () => {
    const names = ['k', 'l'].flatMap((key) =>
      ['after 5', 'after 6'].flatMap((words) => ['0', '1'].map((n) => instructionKey(key, words, n))),
    );
    expect(new Set(names).size).toBe(8);
  });
});

describe('queueOf', () => {
  const ids = Array.from({ length: 10_000 }, (_, index) =>
    taskId({ source: 's', key: String(index), instruction: 'now', delayCount: '0', hop: 1 }),
  );
  const queues = Array.from({ length: 11 }, (_, index) => `projects/p/locations/l/queues/q${index + 1}`);
  const ten = queues.slice(0, 10);

  test('is the same for the same id, in whatever order the queues are named', () => {
    for (const id of ids.slice(0, 200)) expect(queueOf(id, ten.toReversed())).toBe(queueOf(id, ten));
  });

  test('is the only one there is', () => {
    expect(queueOf('a', ['q'])).toBe('q');
  });

  test('a queue that is added takes over its share, and no other id moves', () => {
    const few = ids.slice(0, 2_200);
    const moved = few.filter((id) => queueOf(id, queues) !== queueOf(id, ten));
    expect(moved.filter((id) => queueOf(id, queues) !== queues[10])).toEqual([]);
    // An eleventh are 200; chance alone is further off than 41 once in three hundred times.
    expect(moved.length).toBeGreaterThan(159);
    expect(moved.length).toBeLessThan(241);
  });

  test('ten queues get about the same', () => {
    const counts = new Map<string, number>();
    for (const id of ids) {
      const queue = queueOf(id, ten);
      counts.set(queue, (counts.get(queue) ?? 0) + 1);
    }
    const chiSquare = ten.reduce((sum, queue) => sum + ((counts.get(queue) ?? 0) - 1_000) ** 2 / 1_000, 0);
    // Nine degrees of freedom: chance alone is above 27.9 once in a thousand times.
    expect(chiSquare).toBeLessThan(27.9);
  });
});

test.each([
  [0, 1],
  [0.1, 1],
  [1, 1],
  [399, 1],
  [400, 1],
  [401, 2],
  [800, 2],
  [801, 3],
  [4_000, 10],
  [4_001, 11],
])('%d messages a second need %i queues', (perSecond, queues) => {
  expect(queuesFor(perSecond)).toBe(queues);
});
