import { describe, expect, test } from 'vitest';
import { createRepair } from '../../src/shared/delay/repair.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { queues, setUpDelay } from '../support/delaying.ts';

const minute = 60_000;
const later = new ToolkitError('SERVICE_UNAVAILABLE', 'the queue is missing');
const draft = { data: Buffer.from('x'), key: 'k' };
const nothing = { checked: 0, rearmed: 0, overdue: 0, failed: 0 };
const found = (counts: Partial<typeof nothing>, state = 'running') => ({ queues: [{ queue: queues[0], state }], ...nothing, ...counts });

/** Delayed for an hour, a minute ago. */
async function setUp(inMs = 60 * minute) {
  const world = setUpDelay();
  await world.delays.schedule(draft, { id: 'order 7', inMs });
  await world.system.time.advance(minute);
  return { ...world, only: world.task(0) ?? expect.fail() };
}

describe('a repair', () => {
  test('gives an entry whose task is gone another one, under a name that was never used, which fires once', async () => {
    const { topics, tasks, names, repair, task, release, dispatched, only, delays, system } = await setUp();
    tasks.clear();
    expect(await repair()).toEqual(found({ checked: 1, rearmed: 1 }));
    expect([tasks.size, names.size]).toEqual([1, 2]);
    expect(task(0)?.scheduledForMs).toBe(only.scheduledForMs);
    await system.time.advance(59 * minute);
    // The older task was there all the same.
    expect(await dispatched(only)).toEqual({ kind: 'ended' });
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    expect([topics.length, await delays.get('order 7')]).toMatchObject([1, { state: 'fired', generation: 2 }]);
  });

  test('finds nothing to do a second time, also a minute later', async () => {
    const { tasks, repair, system } = await setUp();
    tasks.clear();
    await repair();
    expect(await repair()).toEqual(found({}));
    await system.time.advance(minute);
    expect(await repair()).toEqual(found({ checked: 1 }));
    expect(tasks.size).toBe(1);
  });

  test('beside another one makes one task', async () => {
    const { tasks, names, repair, delays } = await setUp();
    tasks.clear();
    const both = await Promise.all([repair(), repair()]);
    expect(both.map(({ rearmed }) => rearmed).toSorted()).toEqual([0, 1]);
    expect([tasks.size, names.size, (await delays.get('order 7'))?.generation]).toEqual([1, 2, 2]);
  });

  test('leaves alone what was written less than a minute ago: its task may be under way', async () => {
    const { tasks, repair, system, delays } = setUpDelay();
    await delays.schedule(draft, { id: 'order 7', inMs: 0 });
    tasks.clear();
    await system.time.advance(minute - 1);
    expect(await repair()).toEqual(found({}));
    await system.time.advance(1);
    expect(await repair()).toEqual(found({ checked: 1, rearmed: 1 }));
  });

  test.each([
    [minute, 0],
    [minute + 1, 1],
  ])('counts what is %i ms overdue though its task is there, and leaves it: %i', async (overdueMs, overdue) => {
    const { tasks, names, repair, system, delays, state } = await setUp(minute);
    state.of = 'paused';
    await system.time.advance(overdueMs);
    expect(await repair()).toEqual(found({ checked: 1, overdue }, 'paused'));
    expect([tasks.size, names.size, (await delays.get('order 7'))?.generation]).toEqual([1, 1, 1]);
  });

  test('leaves alone what ended', async () => {
    const { tasks, repair, system, delays, release, only } = await setUp();
    await release(only);
    await delays.schedule(draft, { id: 'order 8', inMs: 1 });
    await delays.cancel('order 8');
    await system.time.advance(10 * minute);
    expect(await repair()).toEqual(found({}));
    expect(tasks.size).toBe(0);
  });

  test('finds the task of a later hop', async () => {
    const { tasks, repair, system, release, only, delays } = await setUp(30 * 24 * 60 * minute);
    expect(await release(only)).toEqual({ kind: 'hop', hop: 2 });
    await system.time.advance(26 * 24 * 60 * minute);
    expect(await repair()).toEqual(found({ checked: 1 }));
    tasks.clear();
    expect(await repair()).toEqual(found({ checked: 1, rearmed: 1 }));
    const { dueAtMs = 0 } = (await delays.get('order 7')) ?? {};
    expect([...tasks.values()].map(({ scheduledForMs }) => scheduledForMs)).toEqual([dueAtMs]);
  });

  test.each([
    [59_999, 0],
    [60_000, 1],
  ])('of a run that died %i ms ago makes %i tasks, which publish', async (agoMs, rearmed) => {
    const { topics, tasks, ledger, payloads, repair, system, task, release, only, delays } = await setUp();
    const publisher = { publish: () => new Promise<string[]>(() => {}) };
    const dying = setUpDelay({}, { publisher, ledger, system, payloads });
    void dying.dispatched(only);
    await system.time.settled();
    tasks.clear();
    await system.time.advance(agoMs);
    expect(await repair()).toEqual(found({ checked: rearmed, rearmed }));
    if (rearmed === 0) return;
    // It may have published: a cancel is too late all the same.
    expect(await delays.cancel('order 7')).toEqual({ outcome: 'tooLate' });
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    expect([topics.length, (await delays.get('order 7'))?.state]).toEqual([1, 'fired']);
  });

  test('counts what it could not help, and helps it once there is a queue', async () => {
    const { tasks, failure, state, repair, system, release, task, topics } = await setUp();
    tasks.clear();
    failure.schedule = later;
    state.of = 'missing';
    expect(await repair()).toEqual(found({ checked: 1, failed: 1 }, 'missing'));
    failure.schedule = undefined;
    state.of = 'running';
    await system.time.advance(minute);
    expect(await repair()).toEqual(found({ checked: 1, rearmed: 1 }));
    await release(task(0));
    expect(topics).toHaveLength(1);
  });

  test('goes over all pages, and to the queues that there are now', async () => {
    const { tasks, parts, system, delays } = setUpDelay();
    for (let index = 0; index < 250; index++) await delays.schedule(draft, { id: `order ${index}`, inMs: index * minute });
    tasks.clear();
    await system.time.advance(minute);
    const now = ['projects/p/locations/l/queues/a', 'projects/p/locations/l/queues/b'];
    expect(await createRepair({ ...parts, queues: now })()).toMatchObject({ checked: 250, rearmed: 250 });
    expect([tasks.size, new Set([...tasks.values()].map(({ queue }) => queue))]).toEqual([250, new Set(now)]);
  });
});
