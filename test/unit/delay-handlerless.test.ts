import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';

const context = { signal: new AbortController().signal };
const day = 86_400_000;
const published = Date.UTC(2026, 0, 1);
const setUp = () => setUpDelay({ handlerless: true, targets: ['audit', 'projects/other/topics/billing'] });

describe('a task that publishes by itself', () => {
  test('carries a request that publishes the message as it was, without the instruction', async () => {
    const { bodies, tasks, delay } = setUp();
    const attributes = { a: 'é', 'ptk-key': 'k', 'ptk-delay-ms': '5000', 'ptk-target': 'final', 'ptk-delay-count': '2' };
    const message = testMessage({ messageId: '5', data: Buffer.from([0x00, 0xff]), attributes, orderingKey: 'o' });
    expect(await delay(message, context)).toEqual({ kind: 'ack', reason: 'scheduled' });
    const origin = { 'ptk-origin-id': '5', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' };
    expect(bodies()).toEqual([
      { messages: [{ data: 'AP8=', attributes: { a: 'é', 'ptk-key': 'k', 'ptk-delay-count': '3', ...origin }, orderingKey: 'o' }] },
    ]);
    expect([...tasks.values()]).toMatchObject([{ scheduledForMs: published + 5_000, publishTo: 'projects/test/topics/final' }]);
  });

  test('leaves out an ordering key where there is none', async () => {
    const { bodies, delay } = setUp();
    await delay(testMessage({ data: '', attributes: { 'ptk-delay-ms': '5000' } }), context);
    expect(Object.keys(bodies()[0].messages[0])).toEqual(['data', 'attributes']);
  });

  test.each([
    [undefined, 'projects/test/topics/final'],
    ['audit', 'projects/test/topics/audit'],
    ['billing', 'projects/other/topics/billing'],
  ])('with the target %s publishes to %s', async (target, publishTo) => {
    const { tasks, delay } = setUp();
    await delay(testMessage({ attributes: { 'ptk-delay-ms': '5000', ...(target && { 'ptk-target': target }) } }), context);
    expect([...tasks.values()]).toMatchObject([{ publishTo }]);
  });

  test('is one, however often its message is delivered, and another one for another delay', async () => {
    const { tasks, delay } = setUp();
    const attributes = { 'ptk-key': 'k', 'ptk-delay-ms': '5000' };
    for (const messageId of ['1', '1', '2']) await delay(testMessage({ messageId, attributes }), context);
    expect(tasks.size).toBe(1);
    await delay(testMessage({ attributes: { ...attributes, 'ptk-delay-count': '1' } }), context);
    expect(tasks.size).toBe(2);
  });

  test('may wait 720 hours', async () => {
    const { tasks, delay } = setUp();
    expect(await delay(testMessage({ attributes: { 'ptk-delay-ms': String(30 * day) } }), context)).toMatchObject({ reason: 'scheduled' });
    expect([...tasks.values()]).toMatchObject([{ scheduledForMs: published + 2_592_000_000 }]);
  });

  test('may not wait 720 hours and 1 ms: the message is dead-lettered', async () => {
    const { tasks, delay } = setUp();
    expect(await delay(testMessage({ attributes: { 'ptk-delay-ms': String(30 * day + 1) } }), context)).toEqual({
      kind: 'deadLetter',
      reason: 'refused',
      detail: 'the message is due 2592000001 ms after it was published; a task that publishes by itself may wait 2592000000',
    });
    expect(tasks.size).toBe(0);
  });

  test('that is too large leaves the number of its message to the stream', async () => {
    const { topics, failure, delay } = setUp();
    failure.schedule = new ToolkitError('MESSAGE_TOO_LARGE', 'the task takes too much');
    const attributes = { 'ptk-delay-ms': '5000', 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' };
    expect(await delay(testMessage({ attributes }), context)).toEqual({
      kind: 'deadLetter',
      reason: 'tooLarge',
      detail: 'the task takes too much',
    });
    expect(topics.map(([topic, message]) => [topic, message.attributes['ptk-tombstone']])).toEqual([['final', 'tooLarge']]);
  });
});

describe('without a release there is', () => {
  test('no ledger, and a delay id is dead-lettered', async () => {
    const { tasks, delay, delays } = setUpDelay({ handlerless: true, ledgerAll: true });
    const attributes = { 'ptk-key': 'k', 'ptk-delay-ms': '5000' };
    expect(await delay(testMessage({ attributes: { ...attributes, 'ptk-delay-id': 'order 7' } }), context)).toEqual({
      ...{ kind: 'deadLetter', reason: 'malformed', detail: 'ptk-delay-id is set, and there is no ledger here' },
    });
    expect(tasks.size).toBe(0);
    await delay(testMessage({ attributes }), context);
    expect([tasks.size, await delays.get('order 7'), await delays.get('k')]).toEqual([1, undefined, undefined]);
  });

  test('a hold and a message that is due all the same', async () => {
    const { topics, tasks, delay, system } = setUp();
    await delay(testMessage({ messageId: '1' }), context);
    const held = delay(testMessage({ messageId: '2', attributes: { 'ptk-delay-ms': '250' } }), context);
    await system.time.advance(250);
    await held;
    expect(topics.map(([, { attributes }]) => attributes['ptk-origin-id'])).toEqual(['1', '2']);
    expect(tasks.size).toBe(0);
  });
});
