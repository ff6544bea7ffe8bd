import { describe, expect, test } from 'vitest';
import { nextHop, planDelay, taskId } from '../../src/shared/delay/decide.ts';
import { dueOf } from '../../src/shared/delay/due.ts';

const publishTimeMs = Date.UTC(2026, 0, 1);
const message = (attributes: Record<string, string>, published: number | undefined = publishTimeMs) => ({
  attributes,
  publishTimeMs: published,
});
const day = 86_400_000;

describe('dueOf', () => {
  test.each([
    ['2026-01-01T00:00:00Z', publishTimeMs],
    ['2026-01-01T00:00:01.5Z', publishTimeMs + 1_500],
    ['2026-01-01T02:00:00+02:00', publishTimeMs],
    ['2026-01-01T00:00:00.123Z', publishTimeMs + 123],
    ['2026-01-01T00:00:00.123000Z', publishTimeMs + 123],
    ['2026-01-01T00:00:00.123001Z', publishTimeMs + 124],
    ['2020-10-08T15:01:23Z', 1_602_169_283_000],
    ['2024-02-29T00:00:00Z', 1_709_164_800_000],
  ])('ptk-deliver-at %s', (text, dueAtMs) => {
    expect(dueOf(message({ 'ptk-deliver-at': text }))?.dueAtMs).toBe(dueAtMs);
  });

  test.each([
    ['0', 0],
    ['1', 1],
    ['60500', 60_500],
    ['007', 7],
  ])('ptk-delay-ms %s', (text, delayMs) => {
    expect(dueOf(message({ 'ptk-delay-ms': text }))?.dueAtMs).toBe(publishTimeMs + delayMs);
  });

  test.each([
    '',
    'tomorrow',
    '2026-02-30T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '1769853000',
    '2026-01-01T25:00:00Z',
  ])('%s is no due time', (text) => {
    expect(() => dueOf(message({ 'ptk-deliver-at': text }))).toThrow(expect.objectContaining({ code: 'MALFORMED_MESSAGE' }));
  });

  test.each(['-5', '', '60.5', '1h', 'NaN', '1e3', ' 5', '9999999999999999'])('%s is no delay', (text) => {
    expect(() => dueOf(message({ 'ptk-delay-ms': text }))).toThrow(expect.objectContaining({ code: 'MALFORMED_MESSAGE' }));
  });

  test('both at once contradict each other', () => {
    expect(() => dueOf(message({ 'ptk-delay-ms': '1', 'ptk-deliver-at': '2026-01-01T00:00:00Z' }))).toThrow('both');
  });

  test('a delay counts from the publish time and needs one', () => {
    expect(() => dueOf({ attributes: { 'ptk-delay-ms': '1' }, publishTimeMs: undefined })).toThrow('publish time');
  });

  test('a message without a due time has none', () => {
    expect(dueOf(message({}))).toBeUndefined();
  });
});

const rules = { defaultMs: 0, holdMs: 0, isLedgered: false };

describe('planDelay', () => {
  test.each([
    ['at the publish time', '0', { kind: 'now' }],
    ['1 ms later', '1', { kind: 'task', scheduledForMs: publishTimeMs + 1, dueAtMs: publishTimeMs + 1 }],
    ['25 days later', String(25 * day), { kind: 'task', scheduledForMs: publishTimeMs + 25 * day }],
    [
      '25 days and 1 ms later',
      String(25 * day + 1),
      { kind: 'task', scheduledForMs: publishTimeMs + 25 * day, dueAtMs: publishTimeMs + 25 * day + 1 },
    ],
  ])('%s', (_, delayMs, expected) => {
    expect(planDelay(message({ 'ptk-delay-ms': delayMs }), 0, rules)).toMatchObject(expected);
  });

  test('without a due time the message goes on at once', () => {
    expect(planDelay(message({}), 0, rules)).toEqual({ kind: 'now' });
  });

  test('without a publish time the hop begins at receipt', () => {
    const plan = planDelay({ attributes: { 'ptk-deliver-at': '2027-01-01T00:00:00Z' }, publishTimeMs: undefined }, publishTimeMs, rules);
    expect(plan).toMatchObject({ kind: 'task', scheduledForMs: publishTimeMs + 25 * day });
  });
});

test('hops lead to the due time and no further', () => {
  expect(nextHop(publishTimeMs + 25 * day, publishTimeMs + 60 * day)).toBe(publishTimeMs + 50 * day);
  expect(nextHop(publishTimeMs + 50 * day, publishTimeMs + 60 * day)).toBe(publishTimeMs + 60 * day);
});

describe('taskId', () => {
  const identity = { source: 's', key: 'k', instruction: 'after 5', delayCount: '0', hop: 1 };
  test('is the same for the same instruction, and 64 hex digits', () => {
    expect(taskId(identity)).toBe(taskId({ ...identity }));
    expect(taskId(identity)).toMatch(/^[0-9a-f]{64}$/);
  });
  test.each([{ source: 't' }, { key: 'l' }, { instruction: 'after 6' }, { delayCount: '1' }, { hop: 2 }])('differs with %o', (change) => {
    expect(taskId({ ...identity, ...change })).not.toBe(taskId(identity));
  });
});
