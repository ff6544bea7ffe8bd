import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';

const context = { signal: new AbortController().signal };
const day = 86_400_000;
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

describe('release', () => {
  test('publishes what was delayed as it was, without the instruction, and with how often it was delayed', async () => {
    const { topics, task, delay, release } = setUp();
    const attributes = { a: 'é', 'ptk-key': 'k', 'ptk-stream': 's', 'ptk-seq': '1', 'ptk-epoch': '1' };
    const delayed = { ...attributes, 'ptk-delay-ms': '5000' };
    await delay(testMessage({ messageId: '5', data: Buffer.from([0x00, 0xff]), attributes: delayed, orderingKey: 'o' }), context);
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    const added = { 'ptk-origin-id': '5', 'ptk-origin-time': '2026-01-01T00:00:00.000Z', 'ptk-delay-count': '1' };
    expect(topics).toEqual([['final', { data: Buffer.from([0x00, 0xff]), attributes: { ...attributes, ...added }, orderingKey: 'o' }]]);
  });

  test('a released message that is delayed again gets a new task and counts on', async () => {
    const { topics, task, names, delay, release } = setUp();
    const attributes = { 'ptk-key': 'k', 'ptk-delay-ms': '5000' };
    await delay(testMessage({ attributes }), context);
    await release(task(0));
    await delay(testMessage({ attributes: { ...topics[0]?.[1].attributes, 'ptk-delay-ms': '5000' } }), context);
    expect(names.size).toBe(2);
    await release(task(0));
    expect(topics[1]?.[1].attributes['ptk-delay-count']).toBe('2');
  });

  test('60 days are three tasks of their own, at 25, 50 and 60 days, and then the message', async () => {
    const { topics, tasks, task, delay, dispatched } = setUp();
    await delay(testMessage({ attributes: { 'ptk-key': 'k', 'ptk-deliver-at': '2026-03-02T00:00:00Z' } }), context);
    const run = (index: number) => dispatched(task(index) ?? expect.fail());
    expect(await run(0)).toEqual({ kind: 'hop', hop: 2 });
    expect(await run(0)).toEqual({ kind: 'hop', hop: 2 });
    expect(await run(1)).toEqual({ kind: 'hop', hop: 3 });
    expect([...tasks.values()].map(({ scheduledForMs }) => (scheduledForMs - published) / day)).toEqual([25, 50, 60]);
    expect(topics).toEqual([]);
    expect(await run(2)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(topics[0]?.[1].attributes).toMatchObject({ 'ptk-key': 'k', 'ptk-delay-count': '1' });
  });

  test('a second dispatch of one task publishes nothing', async () => {
    const { topics, task, delay, dispatched } = setUp();
    await delay(testMessage({ attributes: { 'ptk-delay-ms': '1' } }), context);
    const only = task(0) ?? expect.fail();
    await dispatched(only);
    expect(await dispatched(only)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(topics).toHaveLength(1);
  });

  test('what the final topic refuses is one dead letter, however often its task is dispatched', async () => {
    const { failure, deadLetters, task, delay, dispatched } = setUp();
    await delay(testMessage({ data: 'x', attributes: { 'ptk-delay-ms': '1', a: 'b' } }), context);
    const only = task(0) ?? expect.fail();
    failure.publish = new ToolkitError('REFUSED', 'no');
    expect(await dispatched(only)).toEqual({ kind: 'deadLettered', reason: 'refused' });
    await dispatched(only);
    expect(deadLetters.kept).toEqual([{ message: expect.objectContaining({ data: Buffer.from('x') }), reason: 'refused', detail: 'no' }]);
    expect(deadLetters.kept[0]?.message.attributes).toMatchObject({ a: 'b' });
  });
});
