import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { seededRandom } from '../../src/emulator/server.ts';
import { delayStacks, hour } from '../support/delay-stack.ts';

const { time, open } = await delayStacks();

const batch = 100;
/** Less than a call may take: the calls that race see time go on too. */
const dueMs = 500;
/** Turns of the event loop that a call waits at most: about as many as a release takes. */
const turns = 600;

/** So many messages that become due while somebody calls; what each call was answered, and which messages came. */
async function raced<Answer>(batches: number, seed: number, call: (id: string, delays: Delays) => Promise<Answer>) {
  const { delays, pass, came, quiet } = await open();
  const random = seededRandom(seed);
  const answers = new Map<string, Answer>();
  const late = async (id: string) => {
    for (let turn = Math.floor(random() * turns); turn > 0; turn--) await setImmediate();
    answers.set(id, await call(id, delays));
  };
  for (let index = 0; index < batches; index++) {
    const ids = Array.from({ length: batch }, (_, message) => `${index}/${message}`);
    await Promise.all(ids.map((id) => delays.schedule({ data: Buffer.from(id), key: id }, { id, inMs: dueMs })));
    await Promise.all([time.advance(dueMs), ...ids.map(late)]);
    await quiet();
  }
  const inTime = (await came()).map(({ data }) => data.toString());
  await pass(2 * hour);
  return { answers, inTime, all: (await came()).map(({ data }) => data.toString()), delays };
}

type Delays = Awaited<ReturnType<typeof open>>['delays'];

test('of 1,000 cancels against a release each has one outcome, and its answer says which', { timeout: 60_000 }, async () => {
  const { answers, all } = await raced(1_000 / batch, 7, (id, delays) => delays.cancel(id));
  const tooLate = [...answers].flatMap(([id, { outcome }]) => (outcome === 'tooLate' ? [id] : []));
  expect(answers.size).toBe(1_000);
  expect(all.toSorted()).toEqual(tooLate.toSorted());
  // Or nobody raced.
  expect(tooLate.length).toBeGreaterThan(100);
  expect(tooLate.length).toBeLessThan(900);
});

test('of 200 new times against a release each has one outcome, and its answer says which', { timeout: 60_000 }, async () => {
  const { answers, inTime, all } = await raced(200 / batch, 8, (id, delays) => delays.reschedule(id, time.nowMs() + hour));
  const tooLate = [...answers].flatMap(([id, { outcome }]) => (outcome === 'tooLate' ? [id] : []));
  expect(inTime.toSorted()).toEqual(tooLate.toSorted());
  expect(all.toSorted()).toEqual([...answers.keys()].toSorted());
  expect(tooLate.length).toBeGreaterThan(20);
  expect(tooLate.length).toBeLessThan(180);
});
