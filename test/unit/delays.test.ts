import { describe, expect, test } from 'vitest';
import type { Delayed, Schedule } from '../../src/shared/delay/delays.ts';
import type { DelayState } from '../../src/shared/delay/store.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { setUpDelay } from '../support/delaying.ts';

/** Manual time begins with the year 2026. */
const nowMs = 1_767_225_600_000;
const later = new ToolkitError('SERVICE_UNAVAILABLE', 'later');
const draft = { data: Buffer.from('x'), key: 'k' };
const number = { 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' };
const inFive = { id: 'order 7', inMs: 5_000 };
const setUp = () => setUpDelay({}, {}, { targets: ['audit'] });
type World = ReturnType<typeof setUp>;
const sent = ({ topics }: World) => topics.map(([topic, { attributes }]) => [topic, attributes['ptk-key'], attributes['ptk-tombstone']]);
const listed = async ({ list }: World['delays'], state?: DelayState) => {
  const found: Delayed[] = [];
  for await (const delayed of list(state)) found.push(delayed);
  return found;
};
const malformed = expect.objectContaining({ code: 'MALFORMED_MESSAGE' });

describe('schedule', () => {
  test('makes an entry and its task, and says what there is', async () => {
    const { delays, tasks, bodies } = setUp();
    const delayed = await delays.schedule({ ...draft, attributes: { a: 'b' } }, inFive);
    expect(delayed).toEqual({
      ...{ id: 'order 7', state: 'pending', generation: 1, dueAtMs: nowMs + 5_000, target: 'final', key: 'k' },
      ...{ recurrence: null, messageId: null },
    });
    expect(await delays.get('order 7')).toEqual(delayed);
    expect([...tasks.values()].map(({ scheduledForMs }) => scheduledForMs)).toEqual([nowMs + 5_000]);
    expect(bodies()).toMatchObject([
      { message: { data: 'eA==', attributes: { a: 'b', 'ptk-key': 'k' } }, target: 'final', ledger: { id: 'order 7' } },
    ]);
  });

  test.each<[string, Schedule, number]>([
    ['an instant in ms', { at: nowMs + 1 }, nowMs + 1],
    ['an instant of the past', { at: '2020-10-08T15:01:23Z' }, 1_602_169_283_000],
    ['a date', { at: new Date(nowMs + 7) }, nowMs + 7],
    ['no time', { inMs: 0 }, nowMs],
    ['400 days', { inMs: 400 * 86_400_000 }, nowMs + 34_560_000_000],
  ])('takes %s', async (_, schedule, dueAtMs) => {
    const { delays } = setUp();
    expect(await delays.schedule(draft, schedule)).toMatchObject({ dueAtMs });
  });

  test.each<[string, object, object]>([
    ['seconds', draft, { at: 1_767_225_600 }],
    ['a wait in text', draft, { inMs: '60' }],
    ['an empty id', draft, { id: '', inMs: 1 }],
    ['an id of 1,025 bytes', draft, { id: 'a'.repeat(1_025), inMs: 1 }],
    ['a target that is not allowed', { ...draft, target: 'other' }, { inMs: 1 }],
    ['an empty key', { ...draft, key: '' }, { inMs: 1 }],
    ['a number that cannot be read', { ...draft, attributes: { ...number, 'ptk-seq': '0' } }, { inMs: 1 }],
    ['a recurrence that never comes', draft, { cron: '* * * * *' }],
  ])('refuses %s, and leaves nothing', async (_, given, schedule) => {
    const { delays, tasks } = setUp();
    await expect(delays.schedule(given as typeof draft, schedule as Schedule)).rejects.toThrow(malformed);
    expect([tasks.size, (await listed(delays)).length]).toEqual([0, 0]);
  });

  test('makes an id where none is given, and each another one', async () => {
    const { delays, tasks } = setUp();
    const [one, two] = [await delays.schedule(draft, { inMs: 1 }), await delays.schedule(draft, { inMs: 1 })];
    expect([one.id === two.id, tasks.size]).toEqual([false, 2]);
  });

  test('goes to the target that is given, and its own attributes delay it no more', async () => {
    const world = setUp();
    const attributes = { 'ptk-deliver-at': '2027-01-01T00:00:00Z', 'ptk-target': 'final', 'ptk-delay-id': 'x', a: 'b' };
    await world.delays.schedule({ ...draft, attributes, target: 'audit' }, inFive);
    await world.release(world.task(0));
    expect(world.topics).toEqual([['audit', { data: Buffer.from('x'), attributes: { a: 'b', 'ptk-key': 'k', 'ptk-delay-count': '1' } }]]);
  });

  test('after an error may be called again, and then there is one task', async () => {
    const { delays, failure, tasks } = setUp();
    failure.schedule = later;
    await expect(delays.schedule(draft, inFive)).rejects.toThrow(later);
    failure.schedule = undefined;
    expect(await delays.schedule(draft, inFive)).toMatchObject({ generation: 2 });
    expect(tasks.size).toBe(1);
  });
});

describe('the same id again', () => {
  test('replaces what is pending: the last of three is published, once, at its own time', async () => {
    const world = setUp();
    for (const [index, key] of ['a', 'b', 'c'].entries()) {
      await world.system.time.advance(1_000);
      expect(await world.delays.schedule({ ...draft, key }, inFive)).toMatchObject({
        generation: index + 1,
        dueAtMs: nowMs + 6_000 + index * 1_000,
      });
      expect([...world.tasks.values()].map(({ scheduledForMs }) => scheduledForMs)).toEqual([nowMs + 6_000 + index * 1_000]);
    }
    await world.release(world.task(0));
    expect(sent(world)).toEqual([['final', 'c', undefined]]);
  });

  test('leaves an older task that runs already to find the newer generation', async () => {
    const world = setUp();
    await world.delays.schedule({ ...draft, key: 'a' }, inFive);
    const older = world.task(0) ?? expect.fail();
    await world.delays.schedule({ ...draft, key: 'b' }, inFive);
    expect(await world.dispatched(older)).toEqual({ kind: 'ended' });
    expect([world.topics.length, world.tasks.size]).toEqual([0, 1]);
  });

  test('removes the older payload, and keeps its own', async () => {
    const { delays, payloads, bodies } = setUp();
    await delays.schedule({ ...draft, data: Buffer.alloc(100_000, 1) }, inFive);
    const older = bodies()[0].payload;
    await delays.schedule({ ...draft, data: Buffer.alloc(100_000, 2) }, inFive);
    expect(await payloads.get(older)).toBeUndefined();
    expect((await payloads.get(bodies()[0].payload))?.at(-1)).toBe(2);
  });

  test('gives back the number of what it replaces, before its own is published', async () => {
    const world = setUp();
    await world.delays.schedule({ ...draft, attributes: number }, inFive);
    await world.delays.schedule({ ...draft, key: 'l', attributes: { ...number, 'ptk-seq': '6' } }, inFive);
    expect(sent(world)).toEqual([['final', 'k', 'replaced']]);
    expect(world.topics[0]?.[1].attributes).toEqual({ 'ptk-key': 'k', ...number, 'ptk-tombstone': 'replaced' });
  });

  test('leaves a number that could not be given back to the release', async () => {
    const world = setUp();
    await world.delays.schedule({ ...draft, attributes: number }, inFive);
    world.failure.publish = later;
    await world.delays.schedule({ ...draft, key: 'l' }, inFive);
    world.failure.publish = undefined;
    const newest = world.task(world.tasks.size - 1);
    expect(await world.release(newest)).toMatchObject({ kind: 'published' });
    expect(sent(world)).toEqual([
      ['final', 'k', 'replaced'],
      ['final', 'l', undefined],
    ]);
  });

  test('may be used anew after it was published or cancelled', async () => {
    const world = setUp();
    await world.delays.schedule({ ...draft, key: 'a' }, inFive);
    await world.release(world.task(0));
    expect(await world.delays.schedule({ ...draft, key: 'b' }, inFive)).toMatchObject({
      state: 'pending',
      generation: 2,
      messageId: 'out-0',
    });
    await world.delays.cancel('order 7');
    expect(await world.delays.schedule({ ...draft, key: 'c' }, inFive)).toMatchObject({ state: 'pending', generation: 3 });
    await world.release(world.task(0));
    expect(sent(world)).toEqual([
      ['final', 'a', undefined],
      ['final', 'c', undefined],
    ]);
  });
});

describe('reschedule', () => {
  test('gives the same message a new time, and takes its older task away', async () => {
    const world = setUp();
    await world.delays.schedule(draft, inFive);
    const older = world.task(0) ?? expect.fail();
    expect(await world.delays.reschedule('order 7', '2026-01-02T00:00:00Z')).toEqual({
      ...{ outcome: 'rescheduled', dueAtMs: 1_767_312_000_000, generation: 2 },
    });
    expect([...world.tasks.values()].map(({ scheduledForMs }) => scheduledForMs)).toEqual([1_767_312_000_000]);
    expect(await world.dispatched(older)).toEqual({ kind: 'ended' });
    expect(await world.release(world.task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(sent(world)).toEqual([['final', 'k', undefined]]);
  });

  test('keeps a payload, and needs it', async () => {
    const { delays, payloads, bodies } = setUp();
    await delays.schedule({ ...draft, data: Buffer.alloc(100_000) }, inFive);
    expect(await delays.reschedule('order 7', nowMs + 9_000)).toMatchObject({ outcome: 'rescheduled' });
    const { payload } = bodies()[0];
    expect(await payloads.get(payload)).toBeDefined();
    await payloads.remove(payload);
    await expect(delays.reschedule('order 7', nowMs + 9_999)).rejects.toThrow(expect.objectContaining({ code: 'PAYLOAD_MISSING' }));
    expect(await delays.get('order 7')).toMatchObject({ dueAtMs: nowMs + 9_000 });
  });

  test('of what nobody knows, was cancelled or published changes nothing', async () => {
    const world = setUp();
    expect(await world.delays.reschedule('order 8', nowMs)).toEqual({ outcome: 'unknown' });
    await world.delays.schedule(draft, inFive);
    await world.release(world.task(0));
    expect(await world.delays.reschedule('order 7', nowMs + 9_000)).toEqual({ outcome: 'tooLate' });
    await world.delays.cancel('order 9');
    expect(await world.delays.reschedule('order 9', nowMs + 9_000)).toEqual({ outcome: 'cancelled' });
    expect(world.tasks.size).toBe(0);
  });

  test('to what is no instant is refused', async () => {
    const { delays } = setUp();
    await delays.schedule(draft, inFive);
    await expect(delays.reschedule('order 7', 60)).rejects.toThrow(malformed);
    expect(await delays.get('order 7')).toMatchObject({ generation: 1 });
  });
});

describe('list', () => {
  test('has every entry once over three pages, the earliest due first', async () => {
    const { delays } = setUp();
    // 251 entries due in another order than they were made, and of which 20 share each instant.
    for (let index = 0; index < 251; index++) await delays.schedule(draft, { id: `order ${index}`, inMs: ((index * 37) % 13) * 1_000 });
    const found = await listed(delays);
    expect(new Set(found.map(({ id }) => id)).size).toBe(251);
    expect(found).toHaveLength(251);
    const due = found.map(({ dueAtMs }) => dueAtMs - nowMs);
    expect(due).toEqual(due.toSorted((a, b) => a - b));
    expect([due[0], due[250]]).toEqual([0, 12_000]);
  });

  test.each([100, 200])('ends where %i entries fill its pages', async (count) => {
    const { delays } = setUp();
    for (let index = 0; index < count; index++) await delays.schedule(draft, { id: `order ${index}`, inMs: 1 });
    expect(await listed(delays)).toHaveLength(count);
  });

  test('has those of one state', async () => {
    const { delays, release, task } = setUp();
    for (const id of ['a', 'b', 'c']) await delays.schedule(draft, { id, inMs: 1 });
    await release(task(0));
    await delays.cancel('b');
    const idsOf = async (state?: DelayState) => (await listed(delays, state)).map(({ id }) => id);
    expect(await Promise.all([idsOf(), idsOf('fired'), idsOf('cancelled'), idsOf('releasing')])).toEqual([['c'], ['a'], ['b'], []]);
  });
});

test('nothing is known of an id that was never used', async () => {
  expect(await setUp().delays.get('order 7')).toBeUndefined();
});
