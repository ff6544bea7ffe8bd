import { describe, expect, test } from 'vitest';
import { planQueues } from '../../src/shared/delay/decide.ts';
import { createDelayStatus, type DelayStatus, isOnTime } from '../../src/shared/delay/status.ts';
import type { QueueState } from '../../src/shared/ports.ts';
import { memoryLatenessStore } from '../../src/testing/doubles.ts';
import { queues, setUpDelay } from '../support/delaying.ts';
import { settled } from '../support/manual-system.ts';

const minute = 60_000;
const hour = 60 * minute;

function setUp() {
  const delaying = setUpDelay();
  const lateness = memoryLatenessStore();
  const status = createDelayStatus({ ...delaying, lateness, queues });
  const { delays } = delaying;
  const schedule = (id: string, inMs: number) => delays.schedule({ key: id, data: Buffer.from('x') }, { id, inMs });
  return { ...delaying, lateness, status, schedule };
}

describe('the status of the delay layer', () => {
  test('counts the entries by state', async () => {
    const { status, schedule, delays, task, release, system, failure } = setUp();
    for (const id of 'abcdefghij') await schedule(id, 1_000);
    await delays.cancel('a');
    await delays.cancel('b');
    await system.time.advance(1_000);
    for (const _ of 'cde') await release(task(0));
    failure.publish = new Error('down');
    await expect(release(task(0))).rejects.toThrow('down');
    expect((await status(24)).ledger).toEqual({ pending: 4, releasing: 1, fired: 3, cancelled: 2, overdue: 0 });
  });

  test.each([
    [minute, 0],
    [minute + 1, 1],
  ])('an entry %i ms behind its due time: %i overdue', async (behindMs, overdue) => {
    const { status, schedule, system } = setUp();
    await schedule('a', 1_000);
    await schedule('b', hour);
    await system.time.advance(1_000 + behindMs);
    expect((await status(24)).ledger).toMatchObject({ pending: 2, overdue });
  });

  test('an entry whose release was begun and not ended is overdue too', async () => {
    const { status, schedule, system, task, release, failure } = setUp();
    await schedule('a', 1_000);
    await system.time.advance(1_000);
    failure.publish = new Error('down');
    await expect(release(task(0))).rejects.toThrow('down');
    await system.time.advance(minute + 1);
    expect((await status(24)).ledger).toMatchObject({ pending: 0, releasing: 1, overdue: 1 });
  });

  test('what is overdue is told by the clock of the store and not by that of the machine', async () => {
    const { schedule, ledger, lateness, scheduler, system } = setUp();
    await schedule('a', 1_000);
    const clock = { ...system.clock, nowMs: () => system.clock.nowMs() + 10 * minute };
    const status = createDelayStatus({ ledger, lateness, scheduler, queues, system: { ...system, clock } });
    expect((await status(24)).ledger).toMatchObject({ pending: 1, overdue: 0 });
  });

  test('tells how late messages were in the hours asked for, the first of them as a whole', async () => {
    const { status, lateness, system } = setUp();
    const startMs = Math.floor(system.time.nowMs() / hour) * hour;
    await system.time.advance(startMs + 30 * hour + minute - system.time.nowMs());
    for (const [index, counter] of ['a', 'b'].entries()) {
      await lateness.put({ counter, hourAtMs: startMs + 6 * hour, counts: { 5: 98 } });
      await lateness.put({ counter, hourAtMs: startMs + 5 * hour, counts: { 60000: 1 } });
      await lateness.put({ counter, hourAtMs: startMs + 30 * hour, counts: { [index === 0 ? 100 : 1_000]: 2 } });
    }
    const sinceSix = { fromMs: startMs + 6 * hour, count: 200, p50Ms: 5, p99Ms: 100, highestMs: 1_000 };
    expect((await status(24)).lateness).toEqual(sinceSix);
    expect((await status(25)).lateness).toEqual({ fromMs: startMs + 5 * hour, count: 202, p50Ms: 5, p99Ms: 1_000, highestMs: 60_000 });
    expect((await status(1)).lateness).toEqual({ fromMs: startMs + 29 * hour, count: 4, p50Ms: 100, p99Ms: 1_000, highestMs: 1_000 });
  });

  test('without a message has no lateness', async () => {
    const { status } = setUp();
    expect((await status(24)).lateness).toMatchObject({ count: 0, p50Ms: null, p99Ms: null, highestMs: null });
  });

  test.each<[QueueState, boolean]>([
    ['running', true],
    ['paused', false],
    ['disabled', false],
    ['missing', false],
  ])('a queue that is %s, on time: %s', async (of, onTime) => {
    const { status, state } = setUp();
    state.of = of;
    const told = await status(24);
    expect(told.queues).toEqual([{ queue: queues[0], state: of }]);
    expect(isOnTime(told)).toBe(onTime);
    const ledger = { ...told.ledger, overdue: 1 } satisfies DelayStatus['ledger'];
    expect(isOnTime({ ...told, ledger })).toBe(false);
  });

  test('a store that says nothing is STORE_UNAVAILABLE after its time', async () => {
    const { ledger, lateness, scheduler, system } = setUp();
    const silent = { ...lateness, since: () => new Promise<never>(() => {}) };
    const status = createDelayStatus({ ledger, lateness: silent, scheduler, queues, system, options: { storeTimeoutMs: 100 } });
    await expect(settled(system, status(24))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});

describe('planQueues', () => {
  test.each([
    [1, undefined, 1, 1, true, 1, 0.5],
    [400, undefined, 1, 1, true, 400, 0.5],
    [401, undefined, 2, 2, true, 200.5, 1 / 3],
    [2_000, undefined, 5, 5, true, 400, 1 / 6],
    [2_000, 4, 5, 4, false, 500, 0.2],
    [2_000, 5, 5, 5, true, 400, 1 / 6],
    [2_000, 10, 5, 10, true, 200, 1 / 11],
    [1_000_000, undefined, 2_500, 2_500, true, 400, 1 / 2_501],
  ])('%i a second, %s queues given: %i needed', (perSecond, given, needed, queues, isEnough, perQueuePerSecond, shareOfAnother) => {
    expect(planQueues(perSecond, given)).toEqual({
      ...{ perSecond, needed, queues, isEnough, perQueuePerSecond, shareOfAnother },
      ...{ mostPerQueuePerSecond: 500, requestsPerDay: perSecond * 86_400 },
    });
  });
});
