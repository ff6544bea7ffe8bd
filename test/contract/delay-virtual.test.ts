import { describe, expect, test } from 'vitest';
import { day, delayStacks, hour, minute, second } from '../support/delay-stack.ts';

const { time, open } = await delayStacks();
const body = Buffer.from([0x00, 0xff, 0x80]);
const own = { 'ptk-key': 'k', own: 'grüße' };
const ledgered = { 'ptk-delay-id': 'order-7' };
const stampsOf = (messageId: string, sentAtMs: number) => ({
  'ptk-origin-id': messageId,
  'ptk-origin-time': new Date(sentAtMs).toISOString(),
});
/** As it is to come: whole, and at that instant by the service's clock. */
const message = (atMs: number, attributes: Record<string, string>) => ({
  ...{ messageId: expect.any(String), data: body, orderingKey: 'o', atMs },
  attributes: { ...own, ...attributes },
});

const delays: [string, number][] = [
  ['1 ms', 1],
  ['1 s', second],
  ['29 d 23 h 59 m', 29 * day + 23 * hour + 59 * minute],
  ['30 d', 30 * day],
  ['31 d', 31 * day],
  ['400 d', 400 * day],
];

describe.each<[string, Record<string, string>]>([
  ['without the ledger', {}],
  ['with the ledger', ledgered],
])('%s', (_, id) => {
  test.each(delays)('a message with a delay of %s comes then, not a ms before, once and whole', async (_title, delayMs) => {
    const { publish, pass, came, letters, pending } = await open({ delay: { options: { holdMs: 0 } } });
    const sentAtMs = time.nowMs();
    const messageId = await publish({ ...id, ...own, 'ptk-delay-ms': String(delayMs) }, body, 'o');
    await pass(delayMs - 1);
    expect(await came()).toEqual([]);
    await pass(1);
    const expected = message(sentAtMs + delayMs, { ...stampsOf(messageId, sentAtMs), 'ptk-delay-count': '1' });
    expect(await came()).toEqual([expected]);
    await pass(40 * day);
    expect([(await came()).length, await letters(), pending()]).toEqual([1, [], []]);
  });

  test.each<[string, (nowMs: number) => Record<string, string>]>([
    ['with a delay of 0', () => ({ 'ptk-delay-ms': '0' })],
    ['that is due as it is published', (nowMs) => ({ 'ptk-deliver-at': new Date(nowMs).toISOString() })],
    ['that was due a year ago', (nowMs) => ({ 'ptk-deliver-at': new Date(nowMs - 365 * day).toISOString() })],
  ])('a message %s comes at once, once and whole', async (_title, due) => {
    const { publish, pass, came, letters, pending } = await open();
    const sentAtMs = time.nowMs();
    const messageId = await publish({ ...id, ...own, ...due(sentAtMs) }, body, 'o');
    await pass(0);
    // What the ledger knows was delayed, if for no time; the other went straight on.
    const count = id === ledgered ? { 'ptk-delay-count': '1' } : {};
    expect(await came()).toEqual([message(sentAtMs, { ...stampsOf(messageId, sentAtMs), ...count })]);
    await pass(40 * day);
    expect([(await came()).length, await letters(), pending()]).toEqual([1, [], []]);
  });
});

describe.each([
  ['that is right', 0],
  ['60 s ahead', 60 * second],
  ['60 s behind', -60 * second],
])('with a clock of function and release %s', (_, skewMs) => {
  test.each<[string, Record<string, string>]>([
    ['without the ledger', {}],
    ['with the ledger', ledgered],
  ])('a message %s comes when it is due by the service’s clock: after 1 s, 59 s, 61 s, 30 d and 31 d', async (_title, id) => {
    const { publish, pass, came } = await open({ skewMs });
    const sentAtMs = time.nowMs();
    const each = [second, 59 * second, 61 * second, 30 * day, 31 * day];
    for (const [index, delayMs] of each.entries()) {
      const attributes =
        index % 2 === 0 ? { 'ptk-delay-ms': `${delayMs}` } : { 'ptk-deliver-at': new Date(sentAtMs + delayMs).toISOString() };
      await publish({ ...attributes, ...('ptk-delay-id' in id && { 'ptk-delay-id': `order-${index}` }) }, `${delayMs}`);
    }
    await pass(31 * day);
    expect((await came()).map(({ data, atMs }) => [Number(data), atMs - sentAtMs])).toEqual(each.map((delayMs) => [delayMs, delayMs]));
  });

  test('a message that is due within 250 ms waits in the function, without a task, and comes no ms before', async () => {
    const { publish, until, came, pending, underWay } = await open({ skewMs });
    const sentAtMs = time.nowMs();
    await publish({ ...own, 'ptk-delay-ms': '250' }, body, 'o');
    await until(() => expect(underWay()).toBe(1));
    await time.advance(249);
    expect([await came(), pending(), underWay()]).toEqual([[], [], 1]);
    await time.advance(1);
    await until(async () => expect(await came()).toHaveLength(1));
    expect((await came()).map(({ atMs, attributes }) => [atMs - sentAtMs, attributes['ptk-delay-count']])).toEqual([[250, '1']]);
    await until(() => expect(underWay()).toBe(0));
  });

  test('a call that schedules for 1 s from now means the store’s now', async () => {
    const { delays, pass, came } = await open({ skewMs });
    const calledAtMs = time.nowMs();
    const { dueAtMs } = await delays.schedule({ data: body, key: 'k' }, { inMs: second });
    expect(dueAtMs).toBe(calledAtMs + second);
    await pass(second - 1);
    expect(await came()).toEqual([]);
    await pass(1);
    expect((await came()).map(({ atMs }) => atMs)).toEqual([dueAtMs]);
  });
});
