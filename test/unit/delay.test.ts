import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';

const context = { signal: new AbortController().signal };
const published = Date.UTC(2026, 0, 1);
const origin = { 'ptk-origin-id': '1', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' };
const setUp = () => setUpDelay({ options: { holdMs: 0 } });

describe('delay', () => {
  test('a message that is due goes to the final topic at once, with key and origin', async () => {
    const { topics, tasks, delay } = setUp();
    expect(await delay(testMessage({ messageId: '5', data: 'x', attributes: { a: '1' } }), context)).toEqual({
      kind: 'ack',
      reason: 'processed',
    });
    const stamps = { 'ptk-key': 'projects/test/subscriptions/test/5', 'ptk-origin-id': '5', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' };
    expect(topics).toEqual([['final', { data: Buffer.from('x'), attributes: { a: '1', ...stamps } }]]);
    expect(tasks.size).toBe(0);
  });

  test('a message with a delay becomes one task for its due time', async () => {
    const { topics, tasks, delay } = setUp();
    const message = testMessage({ attributes: { 'ptk-delay-ms': '60500' } });
    expect(await delay(message, context)).toEqual({ kind: 'ack', reason: 'scheduled' });
    expect([...tasks.values()].map(({ scheduledForMs }) => scheduledForMs)).toEqual([published + 60_500]);
    expect(topics).toEqual([]);
  });

  test('a redelivery and a publisher’s retry under the same key make no second task', async () => {
    const { tasks, delay } = setUp();
    const attributes = { 'ptk-key': 'k', 'ptk-delay-ms': '5000' };
    await delay(testMessage({ messageId: '1', attributes }), context);
    expect(await delay(testMessage({ messageId: '1', attributes, deliveryAttempt: 2 }), context)).toMatchObject({ reason: 'scheduled' });
    await delay(testMessage({ messageId: '2', attributes, publishTimeMs: published + 300 }), context);
    expect(tasks.size).toBe(1);
  });

  test('another key, another delay and another subscription each make a task of their own', async () => {
    const { tasks, delay } = setUp();
    const attributes = { 'ptk-key': 'k', 'ptk-delay-ms': '5000' };
    await delay(testMessage({ attributes }), context);
    await delay(testMessage({ attributes: { ...attributes, 'ptk-key': 'l' } }), context);
    await delay(testMessage({ attributes: { ...attributes, 'ptk-delay-ms': '6000' } }), context);
    await delay(testMessage({ attributes, subscription: 'projects/test/subscriptions/other' }), context);
    expect(tasks.size).toBe(4);
  });

  test.each<[string, Error, object]>([
    ['a task that is too large', new ToolkitError('MESSAGE_TOO_LARGE', 'big'), { kind: 'deadLetter', reason: 'tooLarge', detail: 'big' }],
    ['a task that is refused', new ToolkitError('REFUSED', 'no'), { kind: 'deadLetter', reason: 'refused', detail: 'no' }],
    ['a queue that does not answer', new ToolkitError('SERVICE_UNAVAILABLE', 'later'), { kind: 'nack', reason: 'failed' }],
  ])('%s', async (_, schedule, verdict) => {
    const { delay, failure } = setUp();
    failure.schedule = schedule;
    expect(await delay(testMessage({ attributes: { 'ptk-delay-ms': '1' } }), context)).toEqual(verdict);
  });

  test('a message that cannot be published is not acked', async () => {
    const { delay, failure } = setUp();
    failure.publish = new ToolkitError('SERVICE_UNAVAILABLE', 'later');
    expect(await delay(testMessage(), context)).toEqual({ kind: 'nack', reason: 'failed' });
  });

  test.each([{ 'ptk-delay-ms': '-5' }, { 'ptk-key': '' }, { 'ptk-delay-ms': '5', 'ptk-delay-count': 'x' }])(
    'a message with %o is dead-lettered',
    async (attributes) => {
      const { topics, tasks, delay } = setUp();
      expect(await delay(testMessage({ attributes }), context)).toMatchObject({ kind: 'deadLetter', reason: 'malformed' });
      expect([topics.length, tasks.size]).toEqual([0, 0]);
    },
  );
});

describe('a message that is due soon', () => {
  const delayed = (delayMs: number, messageId = '1') =>
    testMessage({ messageId, attributes: { 'ptk-key': 'k', 'ptk-delay-ms': String(delayMs) } });

  test.each([
    [1, [0, 1]],
    [250, [249, 250]],
  ])('of %i ms waits in the function, and is never early', async (delayMs, [before = 0, after = 0]) => {
    const { topics, tasks, delay, system } = setUpDelay();
    const verdict = delay(delayed(delayMs), context);
    await system.time.advance(before);
    expect(topics).toEqual([]);
    await system.time.advance(after - before);
    expect(topics).toEqual([['final', { data: Buffer.of(), attributes: { 'ptk-key': 'k', 'ptk-delay-count': '1', ...origin } }]]);
    expect(await verdict).toEqual({ kind: 'ack', reason: 'processed' });
    expect(tasks.size).toBe(0);
  });

  test('of 251 ms gets a task', async () => {
    const { topics, tasks, delay } = setUpDelay();
    expect(await delay(delayed(251), context)).toEqual({ kind: 'ack', reason: 'scheduled' });
    expect([topics.length, tasks.size]).toEqual([0, 1]);
  });

  test('waits its whole time from receipt, whatever the clocks say', async () => {
    const { topics, delay, system } = setUpDelay();
    // The function's clock is a minute ahead of the service's.
    await system.time.advance(60_000);
    const verdict = delay(delayed(250), context);
    await system.time.advance(249);
    expect(topics).toEqual([]);
    await system.time.advance(1);
    await verdict;
    expect(topics).toHaveLength(1);
  });

  test('and that is delivered again meanwhile is published once, and one of another id again', async () => {
    const { topics, delay, system } = setUpDelay();
    const first = delay(delayed(250), context);
    await system.time.advance(100);
    const second = delay(delayed(250), context);
    const other = delay(delayed(250, '2'), context);
    await system.time.advance(150);
    expect(await Promise.all([first, second])).toEqual([
      { kind: 'ack', reason: 'processed' },
      { kind: 'ack', reason: 'processed' },
    ]);
    expect(topics).toHaveLength(1);
    await system.time.advance(100);
    await other;
    expect(topics).toHaveLength(2);
  });

  test('is not acked where it cannot be published, and waits again', async () => {
    const { topics, delay, system, failure } = setUpDelay();
    failure.publish = new ToolkitError('SERVICE_UNAVAILABLE', 'later');
    const first = delay(delayed(250), context);
    await system.time.advance(250);
    expect(await first).toEqual({ kind: 'nack', reason: 'failed' });
    failure.publish = undefined;
    const second = delay(delayed(250), context);
    await system.time.advance(250);
    expect(await second).toEqual({ kind: 'ack', reason: 'processed' });
    expect(topics).toHaveLength(1);
  });

  test.each(['x', '-1', ''])('and says that it was delayed %j times is dead-lettered', async (count) => {
    const { topics, delay } = setUpDelay();
    const attributes = { 'ptk-delay-ms': '5', 'ptk-delay-count': count };
    expect(await delay(testMessage({ attributes }), context)).toEqual({
      ...{ kind: 'deadLetter', reason: 'malformed', detail: 'ptk-delay-count is no whole number from 0' },
    });
    expect(topics).toEqual([]);
  });
});

describe('a default delay', () => {
  const setUp = () => setUpDelay({ options: { defaultMs: 5_000 } });

  test('is that of a message without a due time', async () => {
    const { tasks, delay } = setUp();
    expect(await delay(testMessage(), context)).toEqual({ kind: 'ack', reason: 'scheduled' });
    expect([...tasks.values()].map(({ scheduledForMs }) => scheduledForMs - published)).toEqual([5_000]);
  });

  test('is not that of a message that is to go at once', async () => {
    const { topics, tasks, delay } = setUp();
    expect(await delay(testMessage({ attributes: { 'ptk-delay-ms': '0' } }), context)).toEqual({ kind: 'ack', reason: 'processed' });
    expect([topics.length, tasks.size]).toEqual([1, 0]);
  });

  test('is not that of a message without a publish time, which is dead-lettered', async () => {
    const { delay } = setUp();
    expect(await delay(testMessage({ publishTimeMs: undefined }), context)).toMatchObject({ kind: 'deadLetter', reason: 'malformed' });
  });
});

describe('with every delayed message in the ledger', () => {
  const setUp = () => setUpDelay({ ledgerAll: true });

  test('each has an entry under its key, and is published once', async () => {
    const { topics, bodies, task, delay, delays, release } = setUp();
    await delay(testMessage({ attributes: { 'ptk-key': 'k', 'ptk-delay-ms': '5000' } }), context);
    expect(await delays.get('k')).toMatchObject({ state: 'pending', generation: 1, dueAtMs: published + 5_000, target: 'final', key: 'k' });
    expect(bodies()).toMatchObject([{ ledger: { id: 'k', generation: 1 } }]);
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(await delays.get('k')).toMatchObject({ state: 'fired', messageId: 'out-0' });
    expect(topics[0]?.[1].attributes).toEqual({ 'ptk-key': 'k', 'ptk-delay-count': '1', ...origin });
  });

  test('one that is due soon has one too, and one that is due now has none', async () => {
    const { topics, tasks, delay, delays } = setUp();
    await delay(testMessage({ attributes: { 'ptk-key': 'k', 'ptk-delay-ms': '1' } }), context);
    await delay(testMessage({ messageId: '2', attributes: { 'ptk-key': 'l', 'ptk-delay-ms': '0' } }), context);
    expect([tasks.size, (await delays.get('k'))?.state, await delays.get('l')]).toEqual([1, 'pending', undefined]);
    expect(topics.map(([, { attributes }]) => attributes['ptk-key'])).toEqual(['l']);
  });

  test('its own id goes before its key', async () => {
    const { delay, delays } = setUp();
    await delay(testMessage({ attributes: { 'ptk-key': 'k', 'ptk-delay-id': 'order 7', 'ptk-delay-ms': '5000' } }), context);
    expect([(await delays.get('order 7'))?.key, await delays.get('k')]).toEqual(['k', undefined]);
  });

  test('one that is delayed again after its release has the next generation', async () => {
    const { topics, task, delay, delays, release } = setUp();
    await delay(testMessage({ attributes: { 'ptk-key': 'k', 'ptk-delay-ms': '5000' } }), context);
    await release(task(0));
    const again = testMessage({
      messageId: '2',
      publishTimeMs: published + 6_000,
      attributes: { ...topics[0]?.[1].attributes, 'ptk-delay-ms': '5000' },
    });
    expect(await delay(again, context)).toEqual({ kind: 'ack', reason: 'scheduled' });
    expect(await delays.get('k')).toMatchObject({ state: 'pending', generation: 2, dueAtMs: published + 11_000 });
    await release(task(0));
    expect(topics.map(([, { attributes }]) => attributes['ptk-delay-count'])).toEqual(['1', '2']);
  });
});
