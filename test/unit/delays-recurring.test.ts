import { describe, expect, test } from 'vitest';
import { calendar } from '../../src/shared/adapters/calendar.ts';
import type { Schedule } from '../../src/shared/delay/delays.ts';
import { malformed, ToolkitError } from '../../src/shared/errors.ts';
import type { Calendar, PayloadStore } from '../../src/shared/index.ts';
import { memoryPayloadStore } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';

const draft = { data: Buffer.from('x'), key: 'k' };
const midnight = Date.UTC(2026, 0, 1);
const second = 1_000;
const unreadable: Calendar = {
  next: () => {
    throw malformed('the time zone is "Europe/Berlin"');
  },
};
const setUp = () => setUpDelay({}, { calendar }, { calendar });

/** Scheduled at midnight, with each of its tasks dispatched so many ms after it is due. */
async function run(schedule: Schedule, latenessMs: readonly number[]) {
  const world = setUp();
  await world.delays.schedule(draft, { id: 'order 7', ...schedule });
  for (const late of latenessMs) {
    const next = world.task(0) ?? expect.fail();
    await world.system.time.advance(Math.max(next.scheduledForMs - world.system.clock.nowMs(), 0) + late);
    expect(await world.release(next)).toMatchObject({ kind: 'published' });
    expect(world.tasks.size).toBe(1);
  }
  const next = world.task(0)?.scheduledForMs ?? Number.NaN;
  return { ...world, keys: world.topics.map(([, { attributes }]) => attributes['ptk-key']), next: new Date(next).toISOString() };
}

describe('a recurrence', () => {
  test.each<[string, Schedule, string, string, string]>([
    ['of a minute', { everyMs: 60_000 }, '2026-01-01T00:01:00.000Z', '2026-01-01T00:02:00.000Z', '2026-01-01T00:03:00.000Z'],
    [
      'of a minute, from an instant on',
      { everyMs: 60_000, at: '2026-01-01T00:00:30Z' },
      ...(['2026-01-01T00:00:30.000Z', '2026-01-01T00:01:30.000Z', '2026-01-01T00:02:30.000Z'] as const),
    ],
    [
      'of a cron pattern, in UTC where nothing is said',
      { cron: '30 2 * * *' },
      ...(['2026-01-01T02:30:00.000Z', '2026-01-02T02:30:00.000Z', '2026-01-03T02:30:00.000Z'] as const),
    ],
    [
      'of a cron pattern in a time zone',
      { cron: '30 2 * * *', timeZone: 'Europe/Berlin' },
      ...(['2026-01-01T01:30:00.000Z', '2026-01-02T01:30:00.000Z', '2026-01-03T01:30:00.000Z'] as const),
    ],
  ])('%s comes again, each time under a key of its own', async (_, schedule, first, again, third) => {
    const { keys, next } = await run(schedule, [0, 0]);
    expect(keys).toEqual([`k@${first}`, `k@${again}`]);
    expect(next).toBe(third);
  });

  test.each([
    [0, '2026-01-01T00:02:00.000Z'],
    [59_999, '2026-01-01T00:02:00.000Z'],
    [60_000, '2026-01-01T00:03:00.000Z'],
    [600_000, '2026-01-01T00:12:00.000Z'],
  ])('that is %i ms late leaves out what it missed, and keeps its pace', async (late, following) => {
    const { keys, next } = await run({ everyMs: 60_000 }, [late]);
    expect([keys, next]).toEqual([['k@2026-01-01T00:01:00.000Z'], following]);
  });

  test('of a cron pattern that is late leaves out what it missed', async () => {
    const { keys, next } = await run({ cron: '0 * * * *' }, [150 * 60 * second]);
    expect([keys, next]).toEqual([['k@2026-01-01T01:00:00.000Z'], '2026-01-01T04:00:00.000Z']);
  });

  test('tells what was published last, and what comes next', async () => {
    const { delays } = await run({ everyMs: 60_000 }, [0]);
    expect(await delays.get('order 7')).toMatchObject({
      ...{ state: 'pending', generation: 2, dueAtMs: midnight + 120_000, messageId: 'out-0', key: 'k', recurrence: { everyMs: 60_000 } },
    });
  });

  test('keeps its payload for all of them', async () => {
    const world = setUp();
    await world.delays.schedule({ ...draft, data: Buffer.alloc(100_000, 7) }, { id: 'order 7', everyMs: 60_000 });
    for (const _ of [1, 2]) await world.release(world.task(0));
    expect(world.topics.map(([, { data }]) => data.length)).toEqual([100_000, 100_000]);
  });

  test('whose task is dispatched again makes the next one where that is not there', async () => {
    const { topics, tasks, failure, task, delays, dispatched, release } = setUp();
    await delays.schedule(draft, { id: 'order 7', everyMs: 60_000 });
    const first = task(0) ?? expect.fail();
    failure.schedule = new ToolkitError('SERVICE_UNAVAILABLE', 'later');
    await expect(dispatched(first)).rejects.toThrow('later');
    failure.schedule = undefined;
    expect(await release(first)).toEqual({ kind: 'ended' });
    expect([topics.length, [...tasks.values()].map(({ scheduledForMs }) => scheduledForMs - midnight)]).toEqual([1, [120_000]]);
  });

  test('whose payload goes while an occurrence is being published ends there', async () => {
    const payloads = memoryPayloadStore();
    let reads = 0;
    const going: PayloadStore = { ...payloads, get: async (ref) => (++reads > 1 ? undefined : payloads.get(ref)) };
    const { delays, task, release } = setUpDelay({}, { payloads: going }, { payloads: going });
    await delays.schedule({ ...draft, data: Buffer.alloc(100_000) }, { id: 'order 7', everyMs: 60_000 });
    expect(await release(task(0))).toEqual({ kind: 'deadLettered', reason: 'payloadMissing' });
    expect(await delays.get('order 7')).toMatchObject({ state: 'fired' });
  });

  test('of a number of a stream is refused: a number comes once', async () => {
    const { delays, tasks } = setUp();
    const attributes = { 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' };
    const scheduled = delays.schedule({ ...draft, attributes }, { id: 'order 7', everyMs: 60_000 });
    await expect(scheduled).rejects.toMatchObject({ code: 'MALFORMED_MESSAGE', message: expect.stringContaining('ptk-stream') });
    expect([tasks.size, await delays.get('order 7')]).toEqual([0, undefined]);
  });

  test('that is cancelled between two occurrences comes no more', async () => {
    const { delays, tasks, task, dispatched, topics } = await run({ everyMs: 60_000 }, [0]);
    const next = task(0) ?? expect.fail();
    expect(await delays.cancel('order 7')).toEqual({ outcome: 'cancelled' });
    expect([await dispatched(next), tasks.size, topics.length]).toEqual([{ kind: 'ended' }, 0, 1]);
  });

  test('is moved by a new time, and goes on from there', async () => {
    const { delays, task, release, topics, tasks } = await run({ everyMs: 60_000 }, [0]);
    await delays.reschedule('order 7', '2026-01-01T00:05:10Z');
    await release(task(0));
    expect(topics[1]?.[1].attributes['ptk-key']).toBe('k@2026-01-01T00:05:10.000Z');
    expect([...tasks.values()].map(({ scheduledForMs }) => scheduledForMs - midnight)).toEqual([370_000]);
  });

  test('goes on after an occurrence that can never be published', async () => {
    const { delays, failure, deadLetters, task, release, tasks, topics } = setUp();
    await delays.schedule(draft, { id: 'order 7', everyMs: 60_000 });
    failure.publish = new ToolkitError('REFUSED', 'no');
    expect(await release(task(0))).toEqual({ kind: 'deadLettered', reason: 'refused' });
    failure.publish = undefined;
    expect([deadLetters.kept.length, tasks.size]).toEqual([1, 1]);
    expect(await release(task(0))).toMatchObject({ kind: 'published' });
    expect(topics).toHaveLength(1);
  });

  test.each<[string, Calendar]>([
    ['where there is no further occurrence', { next: () => undefined }],
    ['where it can be read no more', unreadable],
  ])('ends %s', async (_, later) => {
    const { delays, topics, tasks, task, release } = setUpDelay({}, { calendar: later }, { calendar });
    await delays.schedule(draft, { id: 'order 7', everyMs: 60_000 });
    expect(await release(task(0))).toMatchObject({ kind: 'published' });
    expect([topics.length, tasks.size, (await delays.get('order 7'))?.state]).toEqual([1, 0, 'fired']);
  });

  test.each<[string, object, RegExp]>([
    ['999 ms', { everyMs: 999 }, /everyMs is 999/],
    ['no number', { everyMs: Number.NaN }, /everyMs is NaN/],
    ['a pattern of four fields', { cron: '* * * *' }, /has 4 fields/],
    ['an unknown zone', { cron: '* * * * *', timeZone: 'Berlin' }, /the time zone is "Berlin"/],
    ['30 February', { cron: '0 0 30 2 *' }, /never comes/],
  ])('of %s is refused, and leaves nothing', async (_, schedule, reason) => {
    const { delays, tasks } = setUp();
    await expect(delays.schedule(draft, { id: 'order 7', ...(schedule as Schedule) })).rejects.toThrow(reason);
    expect([tasks.size, await delays.get('order 7')]).toEqual([0, undefined]);
  });
});
