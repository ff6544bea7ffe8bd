import { describe, expect, test } from 'vitest';
import { manualTime, realTime } from '../../src/emulator/time.ts';

describe('manual time', () => {
  test('runs what is due in order of its instant, each at that instant, and nothing else', async () => {
    const time = manualTime(0);
    const ran: [string, number][] = [];
    const note = (name: string) => () => void ran.push([name, time.nowMs()]);
    time.at(30, note('c'));
    time.at(10, note('a'));
    time.at(20, note('b'));
    time.at(31, note('never'));
    await time.advance(30);
    expect(ran).toEqual([
      ['a', 10],
      ['b', 20],
      ['c', 30],
    ]);
    expect(time.nowMs()).toBe(30);
  });

  test('runs what a timer sets on the way, thirty days of it', async () => {
    const time = manualTime(0);
    let days = 0;
    const nextDay = () => {
      days += 1;
      time.after(86_400_000, nextDay);
    };
    time.after(86_400_000, nextDay);
    await time.advance(30 * 86_400_000);
    expect(days).toBe(30);
  });

  test('goes on only when work that a timer began has ended', async () => {
    const time = manualTime(0);
    const seen: number[] = [];
    const work = async () => {
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      seen.push(time.nowMs());
    };
    time.at(5, () => void time.track(work()));
    time.at(6, () => seen.push(6));
    await time.advance(10);
    expect(seen).toEqual([5, 6]);
  });

  test('a cancelled timer does not run', async () => {
    const time = manualTime(0);
    let ran = false;
    const cancel = time.at(5, () => {
      ran = true;
    });
    cancel();
    await time.advance(10);
    expect(ran).toBe(false);
  });
});

test('real time holds a timer of thirty days, which Node itself would fire at once', async () => {
  const time = realTime();
  let ran = false;
  time.after(30 * 86_400_000, () => {
    ran = true;
  });
  await new Promise<void>((resolve) => void time.after(20, resolve));
  expect(ran).toBe(false);
  time.close();
});
