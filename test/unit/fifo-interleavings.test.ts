import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/emulator/faults.ts';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { memoryFifoStore } from '../../src/shared/adapters/memory-fifo.ts';
import type { Cursor } from '../../src/shared/fifo/cursor.ts';
import { createFifo } from '../../src/shared/fifo/fifo.ts';
import type { fifoOptions } from '../../src/shared/fifo/options.ts';
import type { FifoStore, Parked } from '../../src/shared/fifo/store.ts';
import type { Message } from '../../src/shared/message.ts';
import type { Options } from '../../src/shared/options.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';
import { context, leaseMs, numbered } from '../support/fifo-processes.ts';
import { manualSystem } from '../support/manual-system.ts';

const count = 8;
const ackDeadlineMs = 10_000;

/** Processes that take turns at every step of every call, one of which may die at any of them, under a broker that delivers at least once. */
function world(seed: number, options: Partial<Options<typeof fifoOptions>>) {
  const random = seededRandom(seed);
  const system = { ...manualSystem(), random };
  const records = memoryRecordStore<Cursor>(system.clock);
  const park = new Map<string, Parked>();
  const runs: number[] = [];
  const inFlight = new Set<number>();
  let together = 0;

  const process = (diesAtStep = Number.POSITIVE_INFINITY) => {
    let steps = 0;
    /** A while passes, or the process is dead and nothing more of it happens. */
    const step = () =>
      new Promise<void>((resolve) => {
        if (++steps < diesAtStep) system.clock.after(Math.floor(random() * 4), resolve);
      });
    const stepped = <A extends unknown[], T>(call: (...args: A) => Promise<T>) => {
      return async (...args: A): Promise<T> => {
        await step();
        const result = await call(...args);
        await step();
        return result;
      };
    };
    const base = memoryFifoStore(system.clock, records, park);
    const store: FifoStore = {
      ...base,
      get: stepped(base.get),
      put: stepped(base.put),
      park: stepped(base.park),
      unpark: stepped(base.unpark),
      lowest: stepped(base.lowest),
      ahead: stepped(base.ahead),
      due: stepped(base.due),
      look: stepped(base.look),
      beside: (change) => ({ get: stepped(base.get), put: stepped(base.beside(change).put) }),
    };
    const handle = async ({ attributes }: Message) => {
      const number = Number(attributes['ptk-seq']);
      inFlight.add(number);
      together = Math.max(together, inFlight.size);
      await step();
      runs.push(number);
      inFlight.delete(number);
      await step();
      if (random() < 0.1) throw new Error('not this time');
    };
    const parts = { consumer: 'c', store, system, log: silentLog, deadLetters: keptDeadLetters() };
    const deliver = createFifo({ ...parts, options: { leaseMs, maxAttempts: 0, ...options } })(handle);
    return { deliver, isDead: () => steps >= diesAtStep };
  };
  return { random, system, process, runs, park, records, most: () => together };
}

describe('fifo over three processes, shuffled and with copies', () => {
  const seeds = Array.from({ length: 300 }, (_, index) => index + 1);
  test.each(seeds)('ends every number in order, and leaves nothing parked (seed %i)', async (seed) => {
    const holdMs = seed % 4 < 2 ? 0 : 400;
    const commitEvery = seed % 5 < 3 ? 1 : 3;
    const { random, system, process, runs, park, records, most } = world(seed, { holdMs, commitEvery });
    const deaths = seed % 3;
    // Copies are of one message, which the ack of one of them ends, or messages of their own.
    const areOneMessage = seed % 2 === 1;
    const acked = new Set<number>();
    const processes = Array.from({ length: 3 }, (_, index) => process(index < deaths ? 1 + Math.floor(random() * 80) : undefined));
    let waiting = Array.from({ length: count + 8 }, (_, index) => (index < count ? index + 1 : 1 + Math.floor(random() * count)));
    for (let rounds = 0; waiting.length > 0 && rounds < 60; rounds++) {
      const left = [...waiting];
      const shuffled = waiting.flatMap(() => left.splice(Math.floor(random() * left.length), 1));
      const again: number[] = [];
      const deliveries = shuffled.map(async (number) => {
        const taken = Math.floor(random() * 3);
        const { deliver } = processes[taken] ?? process();
        const unanswered = new Promise<'unanswered'>((resolve) => void system.clock.after(ackDeadlineMs, () => resolve('unanswered')));
        await new Promise<void>((resolve) => void system.clock.after(Math.floor(random() * 30), resolve));
        const answer = await Promise.race([deliver(numbered(number), context()), unanswered]);
        if (answer === 'unanswered' || answer.kind === 'nack') again.push(number);
        else acked.add(number);
      });
      const all = Promise.all(deliveries);
      await system.time.advance(ackDeadlineMs + 100);
      await all;
      processes.forEach(({ isDead }, index) => {
        if (isDead()) processes[index] = process();
      });
      waiting = areOneMessage ? again.filter((number) => !acked.has(number)) : again;
    }
    // A copy that is acked while another one of the same message still looks after the stream leaves that one's failure to the sweep.
    for (let sweeps = 0; areOneMessage && park.size > 0 && sweeps < 20; sweeps++) {
      const swept = process().deliver.sweep();
      await system.time.advance(60_000);
      await swept;
    }
    const numbers = Array.from({ length: count }, (_, index) => index + 1);
    expect(waiting).toEqual([]);
    expect([...new Set(runs)]).toEqual(numbers);
    // A number is begun again only with what the same write of the cursor would have covered.
    const goesBack = (number: number, index: number) => number < (runs[index - 1] ?? 0) - (commitEvery - 1);
    expect(runs.filter(goesBack)).toEqual([]);
    if (deaths === 0) expect(runs.toSorted((a, b) => a - b)).toEqual(runs);
    expect([...park.values()]).toEqual([]);
    expect((await records.get('c~s'))?.record).toMatchObject({ last: count, runId: '' });
    if (deaths === 0) expect(most()).toBe(1);
  });
});
