import { expect, test } from 'vitest';
import { pushPace } from '../../src/emulator/pubsub/push-pace.ts';
import { manualTime } from '../../src/emulator/time.ts';

/** A pace after so many nacks in a row, each as soon as the pause allows, and when it was woken. */
async function paced(nacks: number) {
  const time = manualTime(0);
  const wokenAtMs: number[] = [];
  const pace = pushPace(time, () => wokenAtMs.push(time.nowMs()));
  for (let nack = 0; nack < nacks; nack++) {
    while (pace.isPaused()) await time.advance(100);
    pace.nacked();
  }
  return { time, pace, wokenAtMs };
}

test('nine nacks in a row pause nothing, the tenth 100 ms', async () => {
  expect((await paced(9)).pace.isPaused()).toBe(false);
  const { time, pace, wokenAtMs } = await paced(10);
  expect(pace.isPaused()).toBe(true);
  await time.advance(99);
  expect(pace.isPaused()).toBe(true);
  await time.advance(1);
  expect(pace.isPaused()).toBe(false);
  expect(wokenAtMs).toEqual([100]);
});

test('each nack after a pause doubles it, up to a minute', async () => {
  const { wokenAtMs, time } = await paced(22);
  await time.advance(60_000);
  const pauses = wokenAtMs.map((atMs, index) => atMs - (wokenAtMs[index - 1] ?? 0));
  expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000, 60_000]);
});

test('nacks of what was under way when the pause began do not lengthen it, and an ack ends the row', async () => {
  const { time, pace, wokenAtMs } = await paced(10);
  for (let nack = 0; nack < 50; nack++) pace.nacked();
  await time.advance(100);
  expect(wokenAtMs).toEqual([100]);
  pace.acked();
  for (let nack = 0; nack < 9; nack++) pace.nacked();
  expect(pace.isPaused()).toBe(false);
});
