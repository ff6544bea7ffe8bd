import { describe, expect, test } from 'vitest';
import type { Came } from '../support/delay-stack.ts';
import { day, delayStacks, hour, second } from '../support/delay-stack.ts';

const { time, inbox, open, tasks } = await delayStacks();
const keysOf = (came: readonly Came[]) => came.map(({ attributes }) => attributes['ptk-key']);

describe('from topic to topic', () => {
  test('a delayed message goes to the topic that it names, and the name does not travel on', async () => {
    const toOther = await inbox('other');
    const { publish, pass, came, letters } = await open({ delay: { targets: ['other'] } });
    const sentAtMs = time.nowMs();
    await publish({ 'ptk-key': 'a', 'ptk-target': 'other', 'ptk-delay-ms': '5000' });
    await publish({ 'ptk-key': 'b', 'ptk-target': 'other', 'ptk-delay-ms': '6000', 'ptk-delay-id': 'b' });
    await publish({ 'ptk-key': 'c', 'ptk-target': 'other' });
    await publish({ 'ptk-key': 'd', 'ptk-delay-ms': '7000' });
    await pass(day);
    const arrived = await toOther();
    expect(arrived.map(({ attributes, atMs }) => [attributes['ptk-key'], atMs - sentAtMs])).toEqual([
      ['c', 0],
      ['a', 5_000],
      ['b', 6_000],
    ]);
    expect(
      arrived.flatMap(({ attributes }) => Object.keys(attributes)).filter((name) => /target|delay-(id|ms)|deliver/.test(name)),
    ).toEqual([]);
    expect([keysOf(await came()), await letters()]).toEqual([['d'], []]);
  });

  test('a topic that is not allowed is one dead letter that names those that are, and nothing is published', async () => {
    const { publish, pass, came, letters, finalTopic, subscription } = await open({ delay: { targets: ['other'] } });
    await publish({ 'ptk-key': 'a', 'ptk-target': 'another', 'ptk-delay-ms': '5000', own: 'x' });
    await pass(day);
    expect(await came()).toEqual([]);
    expect((await letters()).map(({ attributes }) => attributes)).toEqual([
      expect.objectContaining({
        ...{ own: 'x', 'ptk-key': 'a', 'ptk-delay-ms': '5000', 'ptk-dead-reason': 'malformed', 'ptk-dead-source': subscription },
        'ptk-dead-detail': `ptk-target is "another"; it must be one of ${finalTopic}, other`,
      }),
    ]);
  });

  describe.each<[string, Record<string, string>]>([
    ['without the ledger', {}],
    ['with the ledger', { 'ptk-delay-id': 'a' }],
  ])('where what is due goes back to topic A, %s', (_, id) => {
    test.each([0, 60 * second])('the chain A, delay, A ends with one copy, also with a default delay of %d ms', async (defaultMs) => {
      const { publish, pass, came, letters, pending } = await open({ toSource: true, delay: { options: { defaultMs } } });
      const sentAtMs = time.nowMs();
      await publish({ ...id, 'ptk-key': 'a', 'ptk-delay-ms': '5000' });
      await pass(400 * day);
      const passes = (await came()).map(({ attributes, atMs }) => [attributes['ptk-key'], attributes['ptk-delay-count'], atMs - sentAtMs]);
      expect(passes).toEqual([
        ['a', undefined, 0],
        ['a', '1', 5_000],
      ]);
      expect([await letters(), pending()]).toEqual([[], []]);
    });

    test('and the function may not read whose subscription it is, the chain ends as a dead letter after 16 passes', async () => {
      const { publish, pass, came, letters, pending, finalTopic } = await open({
        toSource: true,
        delay: { topicOf: async () => undefined },
      });
      await publish({ ...id, 'ptk-key': 'a', 'ptk-delay-ms': '5000' });
      await pass(400 * day);
      const passes = (await came()).map(({ attributes }) => attributes['ptk-delay-passes']);
      expect(passes).toEqual([undefined, undefined, ...Array.from({ length: 15 }, (_pass, index) => `${index + 2}`)]);
      expect((await letters()).map(({ attributes }) => [attributes['ptk-dead-reason'], attributes['ptk-dead-detail']])).toEqual([
        ['loop', `the message passed delay functions too often; it comes round from ${finalTopic}`],
      ]);
      expect(pending()).toEqual([]);
    });
  });
});

describe('a message that comes every day', () => {
  test('over 5 days comes five times, each time under a key of its own, and no more once it is cancelled', async () => {
    const { delays, pass, came, pending } = await open();
    const fromMs = time.nowMs();
    await delays.schedule({ data: Buffer.from('daily'), key: 'report', attributes: { own: 'x' } }, { id: 'report', everyMs: day });
    await pass(5 * day);
    const keyAt = (days: number) => `report@${new Date(fromMs + days * day).toISOString()}`;
    expect((await came()).map(({ attributes, atMs, data }) => [attributes['ptk-key'], atMs - fromMs, `${data}`, attributes.own])).toEqual(
      [1, 2, 3, 4, 5].map((days) => [keyAt(days), days * day, 'daily', 'x']),
    );
    expect(await delays.get('report')).toMatchObject({ state: 'pending', generation: 6, dueAtMs: fromMs + 6 * day });
    expect(await delays.cancel('report')).toEqual({ outcome: 'cancelled' });
    await pass(40 * day);
    expect([(await came()).length, pending()]).toEqual([5, []]);
  });

  test('at 9 in Berlin over 5 days comes at 9 there, on both sides of the change of clocks', async () => {
    const { delays, pass, came } = await open();
    await pass(Date.parse('2099-03-26T12:00:00Z') - time.nowMs());
    await delays.schedule({ data: Buffer.from('x'), key: 'k' }, { id: 'nine', cron: '0 9 * * *', timeZone: 'Europe/Berlin' });
    await pass(5 * day);
    expect((await came()).map(({ atMs }) => new Date(atMs).toISOString())).toEqual([
      '2099-03-27T08:00:00.000Z',
      '2099-03-28T08:00:00.000Z',
      '2099-03-29T07:00:00.000Z',
      '2099-03-30T07:00:00.000Z',
      '2099-03-31T07:00:00.000Z',
    ]);
  });

  test('and whose release was down for two days comes once for the time that was missed, and then daily', async () => {
    const { delays, pass, came, queue } = await open();
    const fromMs = time.nowMs();
    await delays.schedule({ data: Buffer.from('x'), key: 'k' }, { id: 'late', everyMs: day });
    await tasks.pauseQueue({ name: queue });
    await pass(2 * day + 12 * hour);
    expect(await came()).toEqual([]);
    await tasks.resumeQueue({ name: queue });
    await pass(2 * day);
    expect((await came()).map(({ atMs }) => (atMs - fromMs) / hour)).toEqual([60, 72, 96]);
  });
});
