import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';
import { gate } from '../support/manual-system.ts';

const context = { signal: new AbortController().signal };
const nowMs = 1_767_225_600_000;
const later = new ToolkitError('SERVICE_UNAVAILABLE', 'later');
const draft = { data: Buffer.from('x'), key: 'k' };
const number = { 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' };
const inFive = { id: 'order 7', inMs: 5_000 };
const sent = ({ topics }: ReturnType<typeof setUpDelay>) =>
  topics.map(([topic, { attributes }]) => [topic, attributes['ptk-key'], attributes['ptk-tombstone']]);
/** A message that is delayed for 5 s under the id, published so many ms after the beginning. */
const ordered = (key: string, publishedMs: number, attributes: Record<string, string> = {}, messageId = key) =>
  testMessage({
    messageId,
    data: 'x',
    publishTimeMs: nowMs + publishedMs,
    attributes: { 'ptk-key': key, 'ptk-delay-id': 'order 7', 'ptk-delay-ms': '5000', ...attributes },
  });

describe('cancel', () => {
  test('of what is pending: it is never published, and its task is gone', async () => {
    const world = setUpDelay();
    await world.delays.schedule(draft, inFive);
    const only = world.task(0) ?? expect.fail();
    expect(await world.delays.cancel('order 7')).toEqual({ outcome: 'cancelled' });
    expect([world.tasks.size, (await world.delays.get('order 7'))?.state]).toEqual([0, 'cancelled']);
    expect(await world.dispatched(only)).toEqual({ kind: 'ended' });
    expect(world.topics).toEqual([]);
  });

  test('twice has the same outcome, and repeats what the first one may not have done', async () => {
    const world = setUpDelay();
    await world.delays.schedule({ ...draft, attributes: number }, inFive);
    world.failure.publish = later;
    await expect(world.delays.cancel('order 7')).rejects.toThrow(later);
    world.failure.publish = undefined;
    expect(await world.delays.cancel('order 7')).toEqual({ outcome: 'cancelled' });
    expect(sent(world)).toEqual([['final', 'k', 'cancelled']]);
  });

  test('of a sequenced message leaves its number to its stream, once', async () => {
    const world = setUpDelay();
    await world.delays.schedule({ ...draft, attributes: { ...number, a: 'b' } }, inFive);
    expect(await world.delays.cancel('order 7')).toEqual({ outcome: 'cancelled' });
    const attributes = { 'ptk-key': 'k', ...number, 'ptk-tombstone': 'cancelled' };
    expect(world.topics).toEqual([['final', { data: new Uint8Array(), attributes }]]);
  });

  test('removes the payload', async () => {
    const { delays, payloads, bodies } = setUpDelay();
    await delays.schedule({ ...draft, data: Buffer.alloc(100_000) }, inFive);
    const { payload } = bodies()[0];
    await delays.cancel('order 7');
    expect(await payloads.get(payload)).toBeUndefined();
  });

  test('after it was published is too late', async () => {
    const world = setUpDelay();
    await world.delays.schedule(draft, inFive);
    await world.release(world.task(0));
    expect(await world.delays.cancel('order 7')).toEqual({ outcome: 'tooLate' });
    expect(world.topics).toHaveLength(1);
  });

  test('while it is published is too late, also where that run is over', async () => {
    const opened = gate();
    const publisher = { publish: () => opened.opened.then(() => ['m1']) };
    const { delays, task, dispatched, system } = setUpDelay({}, { publisher });
    await delays.schedule(draft, inFive);
    const released = dispatched(task(0) ?? expect.fail());
    await system.time.settled();
    expect(await delays.cancel('order 7')).toEqual({ outcome: 'tooLate' });
    await system.time.advance(60_000);
    expect(await delays.cancel('order 7')).toEqual({ outcome: 'tooLate' });
    opened.open();
    expect(await released).toEqual({ kind: 'published', messageId: 'm1' });
  });

  test('of an entry that is deleted meanwhile may be tried again', async () => {
    const { delays, ledger } = setUpDelay();
    await delays.schedule(draft, inFive);
    ledger.put = async () => ({ conflict: undefined });
    await expect(delays.cancel('order 7')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('of an id of 1,025 bytes is refused', async () => {
    await expect(setUpDelay().delays.cancel('a'.repeat(1_025))).rejects.toThrow('the delay id takes 1025 bytes');
  });
});

describe('cancel of what nobody knows yet', () => {
  test.each([
    ['before it drops the message', 999, 'superseded', []],
    ['after it leaves the message', 1_001, 'scheduled', [['final', 'a', undefined]]],
  ])('and a message that was published %s', async (_, publishedMs, reason, published) => {
    const world = setUpDelay();
    await world.system.time.advance(1_000);
    expect(await world.delays.cancel('order 7')).toEqual({ outcome: 'cancelled' });
    expect(await world.delay(ordered('a', publishedMs), context)).toEqual({ kind: 'ack', reason });
    if (world.task(0)) await world.release(world.task(0));
    expect(sent(world)).toEqual(published);
  });

  test('gives back the number of the message that is dropped', async () => {
    const world = setUpDelay();
    await world.system.time.advance(1_000);
    await world.delays.cancel('order 7');
    expect(await world.delay(ordered('a', 0, number), context)).toEqual({ kind: 'ack', reason: 'superseded' });
    expect(sent(world)).toEqual([['final', 'a', 'superseded']]);
    expect(world.tasks.size).toBe(0);
  });
});

describe('messages under one id', () => {
  test('replace each other by when they were published, and not by when they come', async () => {
    const world = setUpDelay();
    for (const [key, publishedMs, reason] of [
      ['b', 2_000, 'scheduled'],
      ['a', 1_000, 'superseded'],
      ['c', 3_000, 'scheduled'],
      ['b', 2_000, 'superseded'],
    ] as const)
      expect(await world.delay(ordered(key, publishedMs), context)).toEqual({ kind: 'ack', reason });
    expect([...world.tasks.values()].map(({ scheduledForMs }) => scheduledForMs - nowMs)).toEqual([8_000]);
    await world.release(world.task(0));
    expect(sent(world)).toEqual([['final', 'c', undefined]]);
  });

  test('of the same ms go by their ids', async () => {
    const world = setUpDelay();
    for (const id of ['9', '11', '10']) await world.delay(ordered(`k${id}`, 0, {}, id), context);
    await world.release(world.task(0));
    expect(sent(world)).toEqual([['final', 'k11', undefined]]);
  });

  test('are one, delivered again or published again', async () => {
    const world = setUpDelay();
    for (const [messageId, publishedMs] of [
      ['1', 0],
      ['1', 0],
      ['2', 300],
    ] as const)
      expect(await world.delay(ordered('a', publishedMs, {}, messageId), context)).toEqual({ kind: 'ack', reason: 'scheduled' });
    expect([world.tasks.size, (await world.delays.get('order 7'))?.generation]).toEqual([1, 1]);
    await world.release(world.task(0));
    expect(await world.delay(ordered('a', 0, {}, '1'), context)).toEqual({ kind: 'ack', reason: 'superseded' });
    expect([world.topics.length, world.tasks.size]).toEqual([1, 0]);
  });

  test('get their task by another delivery where the first one made the entry alone', async () => {
    const world = setUpDelay();
    world.failure.schedule = later;
    expect(await world.delay(ordered('a', 0), context)).toEqual({ kind: 'nack', reason: 'failed' });
    world.failure.schedule = undefined;
    expect([world.tasks.size, (await world.delays.get('order 7'))?.state]).toEqual([0, 'pending']);
    expect(await world.delay(ordered('a', 0), context)).toEqual({ kind: 'ack', reason: 'scheduled' });
    expect([world.tasks.size, (await world.delays.get('order 7'))?.generation]).toEqual([1, 1]);
  });

  test('give back the numbers of those that are replaced, and of those that come too late', async () => {
    const world = setUpDelay();
    await world.delay(ordered('a', 1_000, number), context);
    await world.delay(ordered('b', 2_000, { ...number, 'ptk-seq': '6' }), context);
    await world.delay(ordered('z', 0, { ...number, 'ptk-seq': '4' }), context);
    await world.release(world.task(0));
    expect(world.topics.map(([, { attributes }]) => [attributes['ptk-key'], attributes['ptk-seq'], attributes['ptk-tombstone']])).toEqual([
      ['a', '5', 'replaced'],
      ['z', '4', 'superseded'],
      // Once more before the message: whoever replaced it may have died before its number was given back.
      ['a', '5', 'replaced'],
      ['b', '6', undefined],
    ]);
  });

  test('give back each number once, by the one that replaces it', async () => {
    const world = setUpDelay();
    for (let seq = 1; seq <= 4; seq++) {
      const attributes = { ...number, 'ptk-seq': String(seq) };
      await world.delays.schedule({ ...draft, key: `k${seq}`, attributes }, inFive);
    }
    expect(world.topics.map(([, { attributes }]) => attributes['ptk-seq'])).toEqual(['1', '2', '3']);
  });

  test('that are due now have an entry and a task too', async () => {
    const world = setUpDelay();
    const { 'ptk-delay-ms': _, ...attributes } = ordered('a', 0).attributes;
    expect(await world.delay({ ...ordered('a', 0), attributes }, context)).toEqual({ kind: 'ack', reason: 'scheduled' });
    expect(await world.delays.get('order 7')).toMatchObject({ state: 'pending', dueAtMs: nowMs });
    await world.release(world.task(0));
    expect(sent(world)).toEqual([['final', 'a', undefined]]);
  });

  test('with an id that cannot be one are dead-lettered', async () => {
    const world = setUpDelay();
    expect(await world.delay(ordered('a', 0, { 'ptk-delay-id': '' }), context)).toMatchObject({ kind: 'deadLetter', reason: 'malformed' });
    expect(world.tasks.size).toBe(0);
  });
});
