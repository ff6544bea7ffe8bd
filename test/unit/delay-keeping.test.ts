import { expect, test } from 'vitest';
import type { PayloadStore } from '../../src/shared/index.ts';
import { memoryPayloadStore, testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';

const day = 86_400_000;
/** Manual time begins with the year 2026. */
const nowMs = Date.UTC(2026, 0, 1);
const data = Buffer.alloc(100_000);
const byId = { 'ptk-delay-id': 'order 7' };
const context = { signal: new AbortController().signal };

/** The delay layer, and for how long each put asks that a payload is kept. */
function setUp() {
  const store = memoryPayloadStore();
  const keptMs: number[] = [];
  const payloads: PayloadStore = {
    ...store,
    put: (ref, bytes, keepMs) => {
      keptMs.push(keepMs);
      return store.put(ref, bytes, keepMs);
    },
  };
  return { ...setUpDelay({ payloads }, { payloads }, { payloads }), keptMs };
}

test.each<[string, number, Record<string, string>, number]>([
  ['in 10 days', 10 * day, {}, 55 * day],
  ['in 1 s', 1_000, {}, 45 * day + 1_000],
  ['in 10 days, by its id', 10 * day, byId, 55 * day],
  ['now, by its id', 0, byId, 45 * day],
  ['a year ago, by its id', -365 * day, byId, 45 * day],
])('the payload of a message that is due %s is kept until its task has ended', async (_, delayMs, id, keptMs) => {
  const world = setUp();
  const attributes = { ...id, 'ptk-deliver-at': new Date(nowMs + delayMs).toISOString() };
  expect(await world.delay(testMessage({ data, publishTimeMs: nowMs, attributes }), context)).toMatchObject({ reason: 'scheduled' });
  expect(world.keptMs).toEqual([keptMs]);
});

test.each([
  ['in 10 days', 10 * day, 55 * day],
  ['a year ago', -365 * day, 45 * day],
])('so is that of a call for %s, and of one that moves it there', async (_, delayMs, keptMs) => {
  const { delays, keptMs: kept } = setUp();
  await delays.schedule({ data, key: 'k' }, { id: 'order 7', at: nowMs + delayMs });
  await delays.reschedule('order 7', nowMs + delayMs);
  expect(kept).toEqual([keptMs, keptMs]);
});

test('that of a recurrence is kept for each occurrence, once more before the one before is published', async () => {
  const { delays, release, task, keptMs, system } = setUp();
  await delays.schedule({ data, key: 'k' }, { id: 'order 7', everyMs: 10 * day });
  await system.time.advance(10 * day);
  await release(task(0));
  expect(keptMs).toEqual([55 * day, 55 * day]);
});
