import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/emulator/faults.ts';
import { manualTime, realTime } from '../../src/emulator/time.ts';
import { timerHeap } from '../../src/emulator/timer-heap.ts';

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

describe('settled', () => {
  test('resolves once what is due now has run, what that sets for now as well, and nothing of later', async () => {
    const time = manualTime(0);
    const ran: string[] = [];
    time.at(0, () => {
      ran.push('now');
      time.after(0, () => ran.push('then'));
    });
    time.at(1, () => ran.push('later'));
    await time.settled();
    expect(ran).toEqual(['now', 'then']);
    expect(time.nowMs()).toBe(0);
  });

  test('on real time too, and it waits for work under way', async () => {
    const time = realTime();
    const ran: string[] = [];
    const work = async () => {
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      ran.push('worked');
    };
    time.after(0, () => void time.track(work()));
    time.after(60_000, () => ran.push('later'));
    await time.settled();
    expect(ran).toEqual(['worked']);
    time.close();
  });
});

test('a hundred thousand timers run in order of their instants, those of one instant in order of their making', () => {
  const random = seededRandom(3);
  const expected: [number, number][] = [];
  const ran: [number, number][] = [];
  const heap = timerHeap<number>();
  for (let made = 0; made < 100_000; made++) {
    const dueAtMs = Math.floor(random() * 1_000);
    const timer = heap.add(dueAtMs, made);
    if (random() < 0.7) heap.cancel(timer);
    else expected.push([dueAtMs, made]);
  }
  for (let due = heap.take(2_000); due; due = heap.take(2_000)) ran.push([due.dueAtMs, due.value]);
  expect(ran).toEqual(expected.sort(([left, first], [right, second]) => left - right || first - second));
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
