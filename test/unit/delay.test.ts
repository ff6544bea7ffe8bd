import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';

const context = { signal: new AbortController().signal };
const published = Date.UTC(2026, 0, 1);
const setUp = () => setUpDelay({ options: { holdMs: 0 } });

describe('delay', () => {
  test('a message that is due goes to the final topic at once, with key and origin', async () => {
    const { topics, tasks, delay } = setUp();
    expect(await delay(testMessage({ messageId: '5', data: 'x', attributes: { a: '1' } }), context)).toEqual({
      kind: 'ack',
      reason: 'processed',
    });
    const stamps = { 'ptk-key': 'projects/test/subscriptions/test/5', 'ptk-origin-id': '5', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' };
    expect(topics).toEqual([['final', { data: Buffer.from('x'), attributes: { a: '1', ...stamps, 'ptk-delay-passes': '1' } }]]);
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
