import { describe, expect, test } from 'vitest';
import { counted, countOf, type Histogram, latenessBoundsMs, merged, quantileMs, readHistogram } from '../../src/shared/delay/lateness.ts';
import { createLateness } from '../../src/shared/delay/lateness-counts.ts';
import type { LatenessHour, LatenessStore } from '../../src/shared/delay/store.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Log } from '../../src/shared/ports.ts';
import { memoryLatenessStore, silentLog } from '../../src/testing/doubles.ts';
import { gate, manualSystem } from '../support/manual-system.ts';

const of = (...latenessMs: number[]): Histogram => latenessMs.reduce(counted, {});

describe('a histogram of lateness', () => {
  test.each([
    [0, '1'],
    [1, '1'],
    [1.001, '2'],
    [2, '2'],
    [3, '5'],
    [5, '5'],
    [6, '10'],
    [100, '100'],
    [101, '200'],
    [1_000, '1000'],
    [1_001, '2000'],
    [60_000, '60000'],
    [60_001, '120000'],
    [86_400_000, '86400000'],
    [86_400_001, 'Infinity'],
    [31_536_000_000, 'Infinity'],
  ])('counts %d ms up to %s', (latenessMs, bound) => {
    expect(of(latenessMs)).toEqual({ [bound]: 1 });
  });

  test('has 25 bounds from 1 ms to a day, none more than three times the one before', () => {
    expect([latenessBoundsMs.length, latenessBoundsMs[0], latenessBoundsMs.at(-1)]).toEqual([25, 1, 86_400_000]);
    for (const [index, boundMs] of latenessBoundsMs.entries()) {
      const ratio = boundMs / (latenessBoundsMs[index - 1] ?? boundMs / 2);
      expect([boundMs, ratio > 1 && ratio <= 3]).toEqual([boundMs, true]);
    }
  });

  test('adds up with others, and changes none', () => {
    const [a, b] = [of(1, 7), of(8, 200_000_000)];
    expect(merged([a, b, {}])).toEqual({ 1: 1, 10: 2, Infinity: 1 });
    expect([a, b, merged([]), countOf(merged([a, b]))]).toEqual([{ 1: 1, 10: 1 }, { 10: 1, Infinity: 1 }, {}, 4]);
  });

  test.each<[Histogram, number, number | undefined]>([
    [{}, 50, undefined],
    [{ 5: 1 }, 1, 5],
    [{ 5: 1 }, 100, 5],
    [{ 5: 50, 10: 50 }, 50, 5],
    [{ 5: 49, 10: 51 }, 50, 10],
    [{ 10: 1, 5: 99 }, 99, 5],
    [{ 10: 2, 5: 98 }, 99, 10],
    [{ 100: 1, 20: 1, 3600000: 1 }, 100, 3_600_000],
    [{ Infinity: 1, 5: 99 }, 99, 5],
    [{ Infinity: 1, 5: 99 }, 100, Number.POSITIVE_INFINITY],
  ])('%j is late by at most, at %i %%: %d ms', (histogram, percent, boundMs) => {
    expect(quantileMs(histogram, percent)).toBe(boundMs);
  });

  test.each<[unknown, Histogram]>([
    [
      { 1: 2, 3000: 1, Infinity: 4 },
      { 1: 2, 3000: 1, Infinity: 4 },
    ],
    [{ 1: 0, 2: -1, 5: 1.5, 10: '3', 20: null, 50: Number.NaN, 0: 1, x: 1 }, {}],
    [undefined, {}],
    [null, {}],
    ['12', {}],
    [[7, 8], { 1: 8 }],
  ])('%j as it is stored is read as %j', (stored, histogram) => {
    expect(readHistogram(stored)).toEqual(histogram);
  });
});

describe('createLateness', () => {
  const hour = '2026-01-01T05';
  /** Counters over a store that can fail, at 5 s past an hour. */
  async function setUp(put: LatenessStore['put'] = async () => {}) {
    const system = manualSystem();
    await system.time.advance(Date.parse(`${hour}:00:05Z`) - system.time.nowMs());
    const written: LatenessHour[] = [];
    const warned: string[] = [];
    const log: Log = { ...silentLog, warn: (_, text) => void warned.push(text) };
    const store: LatenessStore = {
      ...memoryLatenessStore(),
      async put(hour) {
        written.push(hour);
        await put(hour);
      },
    };
    return { system, written, warned, lateness: createLateness({ store, system, log }), store, log };
  }
  const hourAtMs = Date.parse(`${hour}:00:00Z`);

  test('writes what it counted 10 s after the first message, and nothing while there is none', async () => {
    const { system, written, lateness } = await setUp();
    await system.time.advance(60_000);
    for (const latenessMs of [3, 4, 70]) lateness.add(latenessMs);
    await system.time.advance(9_999);
    expect(written).toEqual([]);
    await system.time.advance(1);
    expect(written).toEqual([{ counter: 'id-1', hourAtMs, counts: { 5: 2, 100: 1 } }]);
    await system.time.advance(60_000);
    expect(written).toHaveLength(1);
    lateness.add(3);
    await system.time.advance(10_000);
    expect(written[1]).toEqual({ counter: 'id-1', hourAtMs, counts: { 5: 3, 100: 1 } });
  });

  test('a thousand messages in a minute are six writes', async () => {
    const { system, written, lateness } = await setUp();
    for (let turn = 0; turn < 1_000; turn++) {
      lateness.add(1);
      await system.time.advance(60);
    }
    expect(written).toHaveLength(5);
    await lateness.close();
    expect(written.map(({ counts }) => counts[1])).toEqual([167, 334, 501, 668, 835, 1_000]);
  });

  test('each process counts for itself, and each hour', async () => {
    const { system, written, lateness, store, log } = await setUp();
    const other = createLateness({ store, system, log });
    await system.time.advance(3_593_000);
    lateness.add(1);
    other.add(2);
    await system.time.advance(2_000);
    lateness.add(5);
    await system.time.advance(8_000);
    const next = hourAtMs + 3_600_000;
    expect(written).toEqual(
      expect.arrayContaining([
        { counter: 'id-1', hourAtMs, counts: { 1: 1 } },
        { counter: 'id-2', hourAtMs, counts: { 2: 1 } },
        { counter: 'id-1', hourAtMs: next, counts: { 5: 1 } },
      ]),
    );
    lateness.add(5);
    await lateness.close();
    expect(written.slice(3)).toEqual([{ counter: 'id-1', hourAtMs: next, counts: { 5: 2 } }]);
  });

  test('a write that fails is tried again 10 s later, with what has come since', async () => {
    let failures = 2;
    const { system, written, warned, lateness } = await setUp(async () => {
      if (failures-- > 0) throw new ToolkitError('STORE_UNAVAILABLE', 'down');
    });
    lateness.add(1);
    await system.time.advance(10_000);
    lateness.add(1);
    await system.time.advance(10_000);
    await system.time.advance(10_000);
    await system.time.advance(60_000);
    expect(written.map(({ counts }) => counts)).toEqual([{ 1: 1 }, { 1: 2 }, { 1: 2 }]);
    expect(warned).toEqual(['lateness not written; it is tried again', 'lateness not written; it is tried again']);
  });

  test('a slow write is not overtaken by the next one', async () => {
    const slow = gate();
    const ended: unknown[] = [];
    const { system, written, lateness } = await setUp(async ({ counts }) => {
      if (written.length === 1) await slow.opened;
      ended.push(counts);
    });
    lateness.add(1);
    await system.time.advance(10_000);
    lateness.add(1);
    const closed = lateness.close();
    await system.time.advance(500);
    expect(written).toHaveLength(1);
    slow.open();
    await closed;
    expect(ended).toEqual([{ 1: 1 }, { 1: 2 }]);
  });

  test('a close writes at once, a second one what came since, and none leaves a timer', async () => {
    const { system, written, lateness } = await setUp();
    lateness.add(1);
    await lateness.close();
    lateness.add(20);
    await system.time.advance(60_000);
    expect(written).toHaveLength(1);
    await lateness.close();
    await lateness.close();
    expect(written.map(({ counts }) => counts)).toEqual([{ 1: 1 }, { 1: 1, 20: 1 }]);
  });

  test('a close is over after a second where the store says nothing, and never fails', async () => {
    const { system, warned, lateness } = await setUp(() => new Promise(() => {}));
    lateness.add(1);
    let isOver = false;
    const closed = lateness.close().then(() => {
      isOver = true;
    });
    await system.time.advance(999);
    expect(isOver).toBe(false);
    await system.time.advance(1);
    await closed;
    expect(warned).toEqual(['lateness not written, as the process ends']);
  });
});
