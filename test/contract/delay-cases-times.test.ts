import { describe, expect, test } from 'vitest';
import type { When } from '../../src/shared/delay/due.ts';
import { type DelayStack, day, delayStacks, second } from '../support/delay-stack.ts';

const { time, open } = await delayStacks();
const instantsOf = async ({ came }: DelayStack) => (await came()).map(({ atMs }) => atMs);
const lettersOf = async ({ letters }: DelayStack) =>
  (await letters()).map(({ attributes }) => [attributes['ptk-dead-reason'], attributes['ptk-dead-detail']]);
const badDelay = (text: string) => `ptk-delay-ms is "${text}"; it must be a whole number of ms from 0`;
const badInstant = (text: string) => `ptk-deliver-at is "${text}"; it must be an RFC 3339 instant such as 2026-01-31T09:30:00Z`;
const draft = { data: Buffer.from('x'), key: 'k' };

describe.each<[string, Record<string, string>]>([
  ['without the ledger', {}],
  ['with the ledger', { 'ptk-delay-id': 'order-7' }],
])('44: what a message says, %s:', (_, id) => {
  test.each([
    ['ptk-delay-ms', '60', 60],
    ['ptk-delay-ms', '0', 0],
    ['ptk-deliver-at', '2020-10-08T15:01:23Z', 0],
    ['ptk-deliver-at', '2020-10-08T15:01:23+02:00', 0],
  ])('44: with %s %j it comes once, %d ms after it was published', async (name, text, afterMs) => {
    const stack = await open({ delay: { options: { holdMs: 0 } } });
    const sentAtMs = time.nowMs();
    await stack.publish({ [name]: text, ...id });
    await stack.pass(second);
    expect([await instantsOf(stack), await stack.letters()]).toEqual([[sentAtMs + afterMs], []]);
  });

  test.each([
    ...['60.5', '-5', '1h', 'NaN', '', ' 60', '1e3'].map((text) => ['ptk-delay-ms', text, badDelay(text)] as const),
    ...['2020-10-08', '2020-10-08T15:01:23', '1602169283', 'NaN'].map((text) => ['ptk-deliver-at', text, badInstant(text)] as const),
  ])('44: with %s %j it is one dead letter with its reason, and is not published', async (name, text, detail) => {
    const stack = await open();
    await stack.publish({ [name]: text, ...id });
    await stack.pass(second);
    expect([await instantsOf(stack), await lettersOf(stack), stack.pending()]).toEqual([[], [['malformed', detail]], []]);
  });
});

describe('44: an instant that is still to come', () => {
  /** By the time of day, so many ms after midnight in Greenwich, and never one before that instant. */
  const named: [time: string, afterMs: number][] = [
    ['12:01:22.9Z', 43_282_900],
    ['15:01:23+02:00', 46_883_000],
    ['15:01:23-00:30', 55_883_000],
    ['15:01:23.000000001Z', 54_083_001],
    ['15:01:23.001Z', 54_083_001],
    ['15:01:23.0010001Z', 54_083_002],
    ['15:01:23Z', 54_083_000],
  ];

  test.each([
    ['right', '2036-10-08', 2_107_036_800_000, 0],
    ['5 s behind', '2037-10-08', 2_138_572_800_000, -5 * second],
  ])(
    '44: with clocks of function and release that are %s each message comes then and no ms before',
    async (_, date, midnightMs, skewMs) => {
      await time.advance(midnightMs - time.nowMs());
      const { publish, pass, came } = await open({ skewMs });
      for (const [text] of named) await publish({ 'ptk-deliver-at': `${date}T${text}` }, text);
      await pass(day);
      expect((await came()).map(({ data, atMs }) => [`${data}`, atMs - midnightMs]).sort()).toEqual(named.toSorted());
    },
  );

  test('44: with a clock of the caller that is 5 s behind a delay of 10 s is 10 s by the clock of the service', async () => {
    const stack = await open({ skewMs: -5 * second });
    const sentAtMs = time.nowMs();
    await stack.publish({ 'ptk-delay-ms': '10000' });
    await stack.delays.schedule(draft, { inMs: 10_000 });
    await stack.delays.schedule(draft, { at: sentAtMs + 10_000 });
    await stack.pass(day);
    expect(await instantsOf(stack)).toEqual([sentAtMs + 10_000, sentAtMs + 10_000, sentAtMs + 10_000]);
  });
});

describe('44: what a caller names', () => {
  const midnightMs = 2_170_108_800_000;

  test('44: it comes once, at that instant: a date, ms since 1970, a text, and fractions of a ms, which are never early', async () => {
    await time.advance(midnightMs - time.nowMs());
    const stack = await open();
    const named: [key: string, when: When, afterMs: number][] = [
      ['a date', { at: new Date('2038-10-08T15:01:23Z') }, 54_083_000],
      ['ms', { at: midnightMs + 54_083_004 }, 54_083_004],
      ['ms and a fraction', { at: midnightMs + 54_083_004.25 }, 54_083_005],
      ['a text', { at: '2038-10-08T17:01:23.006+02:00' }, 54_083_006],
      ['a while and a fraction', { inMs: 54_083_006.5 }, 54_083_007],
    ];
    for (const [key, when] of named) await stack.delays.schedule({ ...draft, key }, when);
    await stack.pass(day);
    const came = (await stack.came()).map(({ attributes, atMs }) => [attributes['ptk-key'], atMs - midnightMs]);
    expect([came, await stack.letters()]).toEqual([named.map(([key, , afterMs]) => [key, afterMs]), []]);
  });

  test.each<[string, When, string]>([
    [
      'seconds since 1970',
      { at: 1e9 },
      'at is 1000000000; it must be an instant in ms since 1970, and an instant before March 1973 is most likely in seconds',
    ],
    ['no number', { at: Number.NaN }, 'at is "NaN", which is no instant'],
    ['an invalid date', { at: new Date('tomorrow') }, 'at is "Invalid Date", which is no instant'],
    ['no number of ms from now', { inMs: Number.NaN }, 'inMs is "NaN"; it must be a number of ms from 0'],
    ['a time before now', { inMs: -5 }, 'inMs is "-5"; it must be a number of ms from 0'],
  ])('44: %s: it is refused, and nothing is scheduled', async (_, when, message) => {
    const stack = await open();
    await expect(stack.delays.schedule(draft, when)).rejects.toMatchObject({ code: 'MALFORMED_MESSAGE', message });
    expect([stack.pending(), await stack.ledger.count('pending')]).toEqual([[], 0]);
  });
});
