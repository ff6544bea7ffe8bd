import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { OutgoingMessage } from '../../src/shared/index.ts';
import { sizeOf } from '../../src/shared/message.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';
import { type RecordingPublisher, recordingPublisher } from '../support/recording-publisher.ts';

const context = { signal: new AbortController().signal };
const later = new ToolkitError('SERVICE_UNAVAILABLE', 'later');
const delayed = { 'ptk-key': 'k', 'ptk-delay-ms': '5000' };
const number = { 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' };
/** A task's body as the wire has it. */
const body = (changes: object = {}): string =>
  JSON.stringify({
    ...{ v: 1, source: 'projects/p/subscriptions/s', key: 'k', instruction: 'after 5', hop: 1, dueAtMs: 2_000, scheduledForMs: 2_000 },
    ...{ message: { data: 'AP8=', attributes: { 'ptk-key': 'k' } }, ...changes },
  });

describe('the body of a task', () => {
  test('is released as it stands there', async () => {
    const { topics, releasing } = setUpDelay();
    expect(await releasing({ id: 't', queue: 'q', body: body(), attempt: 1 })).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(topics).toEqual([['final', { data: Buffer.from([0x00, 0xff]), attributes: { 'ptk-key': 'k', 'ptk-delay-count': '1' } }]]);
  });

  test('goes to the target that it names', async () => {
    const { topics, releasing } = setUpDelay();
    await releasing({ id: 't', queue: 'q', body: body({ target: 'audit' }), attempt: 1 });
    expect(topics.map(([topic]) => topic)).toEqual(['audit']);
  });

  test.each([
    ['is empty', ''],
    ['is an empty object', '{}'],
    ['is no JSON', '{"v":1,'],
    ['is base64 of a body', Buffer.from(body()).toString('base64')],
    ['is base64 of that', Buffer.from(Buffer.from(body()).toString('base64')).toString('base64')],
    ['is JSON in JSON', JSON.stringify(body())],
    ['has data that is no base64', body({ message: { data: '%', attributes: {} } })],
    ['lacks its message', body({ message: undefined })],
    ['tells of a payload without its digest', body({ message: undefined, payload: { id: 'p', bytes: 5 } })],
  ])('that %s is one dead letter, however often it is dispatched', async (_, malformed) => {
    const { topics, tasks, deadLetters, releasing } = setUpDelay();
    for (const attempt of [1, 2]) {
      expect(await releasing({ id: 't', queue: 'q', body: malformed, attempt })).toEqual({ kind: 'deadLettered', reason: 'malformed' });
    }
    const letter = { messageId: 't', data: Buffer.from(malformed), attributes: {}, orderingKey: '', subscription: 'q' };
    expect(deadLetters.kept).toMatchObject([{ message: letter, reason: 'malformed' }]);
    expect([topics.length, tasks.size]).toEqual([0, 0]);
  });

  test('whose next hop can never be made is one dead letter', async () => {
    const { deadLetters, releasing } = setUpDelay();
    const message = { data: '', attributes: { 'ptk-delay-count': 'x' } };
    for (const attempt of [1, 2]) {
      const released = await releasing({ id: 't', queue: 'q', body: body({ message, dueAtMs: 3_000 }), attempt });
      expect(released).toEqual({ kind: 'deadLettered', reason: 'malformed' });
    }
    expect(deadLetters.kept).toHaveLength(1);
  });

  test('of a format that is newer than this release waits for a later one', async () => {
    const { topics, deadLetters, releasing } = setUpDelay();
    for (const attempt of [1, 2]) {
      await expect(releasing({ id: 't', queue: 'q', body: body({ v: 2 }), attempt })).rejects.toThrow('the task has format 2');
    }
    expect([topics.length, deadLetters.kept.length]).toEqual([0, 0]);
    expect(await releasing({ id: 't', queue: 'q', body: body(), attempt: 3 })).toMatchObject({ kind: 'published' });
  });

  test('of a newer format is kept as it is where no dispatch may follow', async () => {
    const { deadLetters, releasing } = setUpDelay({}, { options: { maxAttempts: 3 } });
    expect(await releasing({ id: 't', queue: 'q', body: body({ v: 2 }), attempt: 3 })).toEqual({
      kind: 'deadLettered',
      reason: 'attempts',
    });
    expect(deadLetters.kept).toMatchObject([{ message: { data: Buffer.from(body({ v: 2 })) } }]);
  });
});

describe('a message that can never be published', () => {
  test('is one dead letter, however often its task is dispatched', async () => {
    const { failure, deadLetters, task, delay, dispatched } = setUpDelay();
    await delay(testMessage({ data: 'x', attributes: { ...delayed, a: 'b' } }), context);
    const only = task(0) ?? expect.fail();
    failure.publish = new ToolkitError('REFUSED', 'no');
    for (const attempt of [1, 2]) expect(await dispatched(only, attempt)).toEqual({ kind: 'deadLettered', reason: 'refused' });
    expect(deadLetters.kept).toEqual([{ message: expect.objectContaining({ data: Buffer.from('x') }), reason: 'refused', detail: 'no' }]);
    expect(deadLetters.kept[0]?.message.attributes).toMatchObject({ a: 'b' });
  });

  const refused = new ToolkitError('REFUSED', 'no');
  const isTombstone = ([message]: readonly OutgoingMessage[]) => message?.attributes['ptk-tombstone'] !== undefined;
  const setUp = async (refusal: RecordingPublisher['refusal']) => {
    const publisher = recordingPublisher();
    publisher.refusal = refusal;
    const { deadLetters, task, delay, dispatched } = setUpDelay({ targets: ['audit'] }, { publisher });
    await delay(testMessage({ attributes: { ...delayed, ...number, 'ptk-target': 'audit' } }), context);
    const only = task(0) ?? expect.fail();
    const sent = () =>
      publisher.published.map(({ topic, message }) => [topic, message.attributes['ptk-seq'], message.attributes['ptk-tombstone']]);
    return { publisher, deadLetters, sent, dispatch: (attempt: number) => dispatched(only, attempt) };
  };

  test('leaves its number to its stream once, at the target that it had', async () => {
    const { deadLetters, sent, dispatch } = await setUp((_, messages) => (isTombstone(messages) ? undefined : refused));
    for (const attempt of [1, 2]) expect(await dispatch(attempt)).toEqual({ kind: 'deadLettered', reason: 'refused' });
    expect(sent()).toEqual([['audit', '5', 'refused']]);
    expect(deadLetters.kept).toHaveLength(1);
  });

  test('is no dead letter before its number is left, or each dispatch would make one', async () => {
    const { publisher, deadLetters, sent, dispatch } = await setUp((_, messages) => (isTombstone(messages) ? later : refused));
    for (const attempt of [1, 2]) await expect(dispatch(attempt)).rejects.toThrow(later);
    expect(deadLetters.kept).toEqual([]);
    publisher.refusal = (_, messages) => (isTombstone(messages) ? undefined : refused);
    expect(await dispatch(3)).toEqual({ kind: 'deadLettered', reason: 'refused' });
    expect(sent()).toEqual([['audit', '5', 'refused']]);
    expect(deadLetters.kept).toHaveLength(1);
  });

  test('is one dead letter also where its topic refuses the tombstone', async () => {
    const { deadLetters, dispatch } = await setUp(() => refused);
    for (const attempt of [1, 2]) expect(await dispatch(attempt)).toEqual({ kind: 'deadLettered', reason: 'refused' });
    expect(deadLetters.kept).toHaveLength(1);
  });
});

describe('a message that no task holds', () => {
  const sizes = [85_000, 1_000_000, 9_999_000];
  const setUp = async (bytes: number) => {
    const data = Buffer.alloc(bytes, 'grüße');
    const world = setUpDelay();
    expect(await world.delay(testMessage({ data, attributes: delayed, orderingKey: 'o' }), context)).toEqual({
      kind: 'ack',
      reason: 'scheduled',
    });
    return { ...world, data, payload: world.bodies()[0].payload };
  };

  test.each(sizes)('of %i bytes comes back byte for byte, and is kept no longer than that', async (bytes) => {
    const { topics, task, release, payloads, data, payload, bodies } = await setUp(bytes);
    expect(bodies()[0].message).toBeUndefined();
    expect(await payloads.get(payload)).toBeDefined();
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    const [, message] = topics[0] ?? expect.fail();
    expect(Buffer.compare(Buffer.from(message.data), data)).toBe(0);
    expect([message.attributes['ptk-key'], message.attributes['ptk-delay-count'], message.orderingKey]).toEqual(['k', '1', 'o']);
    expect(await payloads.get(payload)).toBeUndefined();
  });

  test('goes with the task as long as it fits', async () => {
    const { bodies, delay } = setUpDelay();
    // In base64 84,920 and 84,924 bytes, beside 80 of its attributes; a task carries 85,000.
    await delay(testMessage({ data: Buffer.alloc(63_690), attributes: delayed }), context);
    await delay(testMessage({ messageId: '2', data: Buffer.alloc(63_691), attributes: { ...delayed, 'ptk-key': 'l' } }), context);
    expect(bodies().map(({ payload }) => payload !== undefined)).toEqual([false, true]);
  });

  test('and is dispatched again is published once', async () => {
    const { topics, task, dispatched } = await setUp(1_000_000);
    for (const attempt of [1, 2]) expect(await dispatched(task(0) ?? expect.fail(), attempt)).toMatchObject({ messageId: 'out-0' });
    expect(topics).toHaveLength(1);
  });

  test('stays where it is until it is published', async () => {
    const { topics, failure, task, dispatched, payloads, payload } = await setUp(1_000_000);
    failure.publish = later;
    await expect(dispatched(task(0) ?? expect.fail())).rejects.toThrow(later);
    expect(await payloads.get(payload)).toBeDefined();
    failure.publish = undefined;
    await dispatched(task(0) ?? expect.fail(), 2);
    expect(topics).toHaveLength(1);
  });

  test('is a dead letter, once, where it is gone', async () => {
    const { topics, deadLetters, task, dispatched, payloads, payload } = await setUp(1_000_000);
    await payloads.remove(payload);
    const only = task(0) ?? expect.fail();
    for (const attempt of [1, 2]) expect(await dispatched(only, attempt)).toEqual({ kind: 'deadLettered', reason: 'payloadMissing' });
    expect(topics).toEqual([]);
    // What is left of it is the body of its task.
    expect(deadLetters.kept).toMatchObject([{ message: { data: Buffer.from(only.body), attributes: {} }, reason: 'payloadMissing' }]);
    expect(deadLetters.kept[0]?.detail).toMatch(/^the payload [0-9a-f]{64} of 1000\d{3} bytes is not stored, or is not what was$/);
  });

  // Its key and origin take 61 bytes, and 64 are left for what its release adds.
  test.each([
    [9_999_875, 'scheduled'],
    [9_999_876, 'tooLarge'],
  ])('is delayed with %i bytes of data: %s, for Pub/Sub takes 10 MB with what is added', async (bytes, reason) => {
    const { delay, task, release, topics } = setUpDelay();
    expect(await delay(testMessage({ data: Buffer.alloc(bytes), attributes: delayed }), context)).toMatchObject({ reason });
    if (reason === 'tooLarge') return expect(task(0)).toBe(undefined);
    await release(task(0));
    expect(topics.map(([, message]) => sizeOf(message))).toEqual([9_999_952]);
  });
});
