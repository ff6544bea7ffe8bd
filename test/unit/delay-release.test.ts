import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { OutgoingMessage } from '../../src/shared/index.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';
import { gate } from '../support/manual-system.ts';

const context = { signal: new AbortController().signal };
const day = 86_400_000;
const published = Date.UTC(2026, 0, 1);
const later = new ToolkitError('SERVICE_UNAVAILABLE', 'later');
const delayed = { 'ptk-key': 'k', 'ptk-delay-ms': '5000' };
const number = { 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' };

describe('release', () => {
  test('publishes what was delayed as it was, without the instruction, and with how often it was delayed', async () => {
    const { topics, task, delay, release } = setUpDelay();
    const attributes = { a: 'é', 'ptk-key': 'k', 'ptk-stream': 's', 'ptk-seq': '1', 'ptk-epoch': '1' };
    const message = testMessage({
      messageId: '5',
      data: Buffer.from([0x00, 0xff]),
      attributes: { ...attributes, ...delayed },
      orderingKey: 'o',
    });
    await delay(message, context);
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    const added = { 'ptk-origin-id': '5', 'ptk-origin-time': '2026-01-01T00:00:00.000Z', 'ptk-delay-count': '1' };
    expect(topics).toEqual([['final', { data: Buffer.from([0x00, 0xff]), attributes: { ...attributes, ...added }, orderingKey: 'o' }]]);
  });

  test('a released message that is delayed again gets a new task and counts on', async () => {
    const { topics, task, names, delay, release } = setUpDelay();
    await delay(testMessage({ attributes: delayed }), context);
    await release(task(0));
    await delay(testMessage({ attributes: { ...topics[0]?.[1].attributes, 'ptk-delay-ms': '5000' } }), context);
    expect(names.size).toBe(2);
    await release(task(0));
    expect(topics[1]?.[1].attributes['ptk-delay-count']).toBe('2');
  });

  test.each([
    [0, 0],
    [-40, 0],
    [40, 40],
  ])('tells how late it is: %i ms after the due time by the clock here it is late by %i', async (afterMs, latenessMs) => {
    const late: number[] = [];
    const { task, delay, release, system } = setUpDelay({}, { onPublished: (ms) => void late.push(ms) });
    await delay(testMessage({ attributes: delayed }), context);
    await system.time.advance(5_000 + afterMs);
    await release(task(0));
    expect(late).toEqual([latenessMs]);
  });
});

describe('a task of several hops', () => {
  test.each([
    ['60 days', '2026-03-02T00:00:00Z', [25, 50, 60]],
    ['400 days', '2027-02-05T00:00:00Z', [25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300, 325, 350, 375, 400]],
  ])('makes one after the other until its %s are over, and publishes once', async (_, text, days) => {
    const { topics, task, tasks, delay, release, dispatched } = setUpDelay();
    await delay(testMessage({ attributes: { 'ptk-key': 'k', 'ptk-deliver-at': text } }), context);
    const scheduled: number[] = [];
    for (let hop = 1; hop < days.length; hop++) {
      const current = task(0) ?? expect.fail();
      scheduled.push((current.scheduledForMs - published) / day);
      expect(await dispatched(current)).toEqual({ kind: 'hop', hop: hop + 1 });
      expect(await release(current)).toEqual({ kind: 'hop', hop: hop + 1 });
      expect([topics.length, tasks.size]).toEqual([0, 1]);
    }
    scheduled.push(((task(0)?.scheduledForMs ?? 0) - published) / day);
    expect(scheduled).toEqual(days);
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(topics.map(([, { attributes }]) => attributes['ptk-delay-count'])).toEqual(['1']);
  });

  test('is dispatched again where the next one could not be made', async () => {
    const { failure, task, tasks, delay, release, dispatched } = setUpDelay();
    await delay(testMessage({ attributes: { 'ptk-key': 'k', 'ptk-deliver-at': '2026-03-02T00:00:00Z' } }), context);
    failure.schedule = later;
    await expect(dispatched(task(0) ?? expect.fail())).rejects.toThrow(later);
    failure.schedule = undefined;
    expect(await release(task(0))).toEqual({ kind: 'hop', hop: 2 });
    expect(tasks.size).toBe(1);
  });
});

describe('a task that is dispatched again', () => {
  test('after its answer was lost publishes nothing', async () => {
    const { topics, task, delay, dispatched } = setUpDelay();
    await delay(testMessage({ attributes: delayed }), context);
    const only = task(0) ?? expect.fail();
    await dispatched(only);
    expect(await dispatched(only, 2)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(topics).toHaveLength(1);
  });

  test('while another dispatch holds it is busy, and then done', async () => {
    const opened = gate();
    const publishing: string[] = [];
    const publisher = {
      publish: async (topic: string) => {
        publishing.push(topic);
        await opened.opened;
        return ['m1'];
      },
    };
    const { task, delay, dispatched, system } = setUpDelay({}, { publisher });
    await delay(testMessage({ attributes: delayed }), context);
    const only = task(0) ?? expect.fail();
    const first = dispatched(only);
    await system.time.settled();
    expect(await dispatched(only, 2)).toEqual({ kind: 'busy' });
    opened.open();
    expect(await first).toEqual({ kind: 'published', messageId: 'm1' });
    expect(await dispatched(only, 3)).toEqual({ kind: 'published', messageId: 'm1' });
    expect(publishing).toEqual(['final']);
  });

  test('after a failed publish may publish at once, and is never busy', async () => {
    const { topics, failure, task, delay, dispatched } = setUpDelay();
    await delay(testMessage({ attributes: delayed }), context);
    const only = task(0) ?? expect.fail();
    failure.publish = later;
    for (const attempt of [1, 2]) await expect(dispatched(only, attempt)).rejects.toThrow(later);
    failure.publish = undefined;
    expect(await dispatched(only, 3)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(topics).toHaveLength(1);
  });

  test('after a publish that was not answered publishes a copy under the same key', async () => {
    const { topics, failure, task, delay, dispatched } = setUpDelay();
    await delay(testMessage({ attributes: delayed }), context);
    const only = task(0) ?? expect.fail();
    failure.answer = later;
    await expect(dispatched(only)).rejects.toThrow(later);
    failure.answer = undefined;
    expect(await dispatched(only, 2)).toEqual({ kind: 'published', messageId: 'out-1' });
    expect(topics).toHaveLength(2);
    expect(topics[1]).toEqual(topics[0]);
  });
});

describe('attempts', () => {
  test.each([1, 2])('%i of 3 fail, and the task is dispatched again', async (attempt) => {
    const { failure, deadLetters, task, delay, dispatched } = setUpDelay({}, { options: { maxAttempts: 3 } });
    await delay(testMessage({ attributes: delayed }), context);
    failure.publish = later;
    await expect(dispatched(task(0) ?? expect.fail(), attempt)).rejects.toThrow(later);
    expect(deadLetters.kept).toEqual([]);
  });

  test.each([3, 4])('%i of 3 fail, and the message is a dead letter with its own attributes', async (attempt) => {
    const { failure, deadLetters, task, delay, dispatched } = setUpDelay({}, { options: { maxAttempts: 3 } });
    const message = testMessage({ messageId: '5', data: 'x', attributes: { a: 'b', ...delayed }, orderingKey: 'o' });
    await delay(message, context);
    failure.publish = later;
    const only = task(0) ?? expect.fail();
    expect(await dispatched(only, attempt)).toEqual({ kind: 'deadLettered', reason: 'attempts' });
    const origin = { 'ptk-origin-id': '5', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' };
    const letter = { messageId: only.id, publishTimeMs: undefined, subscription: message.subscription, deliveryAttempt: undefined };
    expect(deadLetters.kept).toEqual([
      {
        message: {
          ...letter,
          data: Buffer.from('x'),
          attributes: { a: 'b', 'ptk-key': 'k', ...origin, 'ptk-delay-count': '1' },
          orderingKey: 'o',
        },
        ...{ reason: 'attempts', detail: `${attempt} dispatches failed, the last one: later` },
      },
    ]);
  });

  test('that succeed at last are no dead letter', async () => {
    const { deadLetters, task, delay, dispatched } = setUpDelay({}, { options: { maxAttempts: 3 } });
    await delay(testMessage({ attributes: delayed }), context);
    expect(await dispatched(task(0) ?? expect.fail(), 3)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(deadLetters.kept).toEqual([]);
  });

  test('are not counted without a limit', async () => {
    const { failure, task, delay, dispatched } = setUpDelay();
    await delay(testMessage({ attributes: delayed }), context);
    failure.publish = later;
    await expect(dispatched(task(0) ?? expect.fail(), 1_000)).rejects.toThrow(later);
  });

  test('that are used up leave the number of the message to its stream', async () => {
    const { topics, failure, task, delay, dispatched } = setUpDelay({}, { options: { maxAttempts: 3 } });
    await delay(testMessage({ attributes: { ...delayed, ...number } }), context);
    failure.answer = later;
    expect(await dispatched(task(0) ?? expect.fail(), 3)).toEqual({ kind: 'deadLettered', reason: 'attempts' });
    expect(topics.map(([topic, { attributes }]) => [topic, attributes['ptk-seq'], attributes['ptk-tombstone']])).toEqual([
      ['final', '5', undefined],
      ['final', '5', 'attempts'],
    ]);
  });
});

describe('the last attempt', () => {
  const setUp = () => setUpDelay({}, { options: { maxAttempts: 3 } });

  test('that finds another dispatch at it leaves the number to that one', async () => {
    const opened = gate();
    const topics: string[] = [];
    const publisher = {
      publish: async (_topic: string, [message]: readonly OutgoingMessage[]) => {
        await opened.opened;
        topics.push(message?.attributes['ptk-tombstone'] ?? 'the message');
        return ['m1'];
      },
    };
    const { deadLetters, task, delay, dispatched, system } = setUpDelay({}, { options: { maxAttempts: 3 }, publisher });
    await delay(testMessage({ attributes: { ...delayed, ...number } }), context);
    const first = dispatched(task(0) ?? expect.fail(), 2);
    await system.time.settled();
    expect(await dispatched(task(0) ?? expect.fail(), 3)).toEqual({ kind: 'deadLettered', reason: 'attempts' });
    opened.open();
    expect(await first).toEqual({ kind: 'published', messageId: 'm1' });
    expect([deadLetters.kept.length, topics]).toEqual([1, ['the message']]);
  });

  test('is a dead letter also where the number cannot be given back', async () => {
    const { deadLetters, failure, task, delay, dispatched } = setUp();
    await delay(testMessage({ attributes: { ...delayed, ...number } }), context);
    failure.publish = later;
    expect(await dispatched(task(0) ?? expect.fail(), 3)).toEqual({ kind: 'deadLettered', reason: 'attempts' });
    expect(deadLetters.kept).toHaveLength(1);
  });
});
