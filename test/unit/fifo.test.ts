import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/emulator/faults.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Cursor } from '../../src/shared/fifo/cursor.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { faultyStore, type StoreFault, silentStore } from '../support/faulty-store.ts';
import { context, dying, fifoProcesses, leaseMs, numbered, recording } from '../support/fifo-processes.ts';
import { gate, settled } from '../support/manual-system.ts';

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const left = [...items];
  return items.flatMap(() => left.splice(Math.floor(random() * left.length), 1));
}

describe('fifo', () => {
  test('runs the head, acks what is behind the cursor and gives back what is ahead of it', async () => {
    const { process, cursor } = fifoProcesses();
    const handle = recording();
    const deliver = process()(handle);
    expect(await deliver(numbered(2), context())).toEqual(nack('early', 100));
    expect(await cursor()).toBeUndefined();
    expect(await deliver(numbered(1), context())).toEqual(ack('processed'));
    expect(await deliver(numbered(1), context())).toEqual(ack('old'));
    expect(await deliver(numbered(3), context())).toEqual(nack('early', 100));
    expect(await deliver(numbered(2), context())).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 2, epoch: 100, runId: '', by: 0, attempts: 0 });
    expect(handle.runs).toEqual([1, 2]);
  });

  test.each([1, 2, 3, 4, 5])(
    'ends 1 to 20 in order and each once, shuffled, doubled and failing, on three processes (seed %i)',
    async (seed) => {
      const { system, process, cursor } = fifoProcesses();
      const random = seededRandom(seed);
      const handled: number[] = [];
      let failures = 0;
      const handle = async ({ attributes }: { attributes: Readonly<Record<string, string>> }) => {
        await system.time.advance(1);
        if (random() < 0.2) throw new Error(`failure ${++failures}`);
        handled.push(Number(attributes['ptk-seq']));
      };
      const processes = Array.from({ length: 3 }, () => process()(handle));
      const numbers = Array.from({ length: 20 }, (_, index) => index + 1);
      let waiting = shuffled([...numbers, ...numbers], random);
      for (let rounds = 0; waiting.length > 0 && rounds < 500; rounds++) {
        const deliveries = waiting.map(async (sequence, index) => {
          const verdict = await processes[index % 3]?.(numbered(sequence), context());
          return verdict?.kind === 'ack' ? [] : [sequence];
        });
        waiting = shuffled((await settled(system, Promise.all(deliveries))).flat(), random);
      }
      expect(handled).toEqual(numbers);
      expect(failures).toBeGreaterThan(0);
      expect(await cursor()).toMatchObject({ last: 20, runId: '' });
    },
  );

  test('moves the cursor only once the handler is done', async () => {
    const { system, process, cursor } = fifoProcesses();
    const hold = gate();
    const first = process()(() => hold.opened)(numbered(1), context());
    await system.time.advance(500);
    expect(await cursor()).toMatchObject({ last: 0, by: 1, started: 1 });
    expect(await process()(recording())(numbered(2), context())).toEqual(nack('early', 100));
    hold.open();
    expect(await first).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 1, runId: '' });
  });

  test('keeps the cursor when the handler throws, and frees the stream for the next delivery', async () => {
    const { process, cursor } = fifoProcesses();
    const handle = recording(new Error('boom'));
    expect(await process()(handle)(numbered(1), context())).toEqual(nack('failed'));
    expect(await cursor()).toMatchObject({ last: 0, runId: '', attempts: 1 });
    expect(await process()(handle)(numbered(1), context())).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 1, attempts: 0 });
    expect(handle.runs).toEqual([1, 1]);
  });

  test('of two processes that have the head at once one runs it; the other says when the lease will be over', async () => {
    const { system, process } = fifoProcesses();
    const hold = gate();
    let runs = 0;
    const handle = () => {
      runs += 1;
      return hold.opened;
    };
    const both = [process()(handle)(numbered(1), context()), process()(handle)(numbered(1), context())];
    await system.time.advance(0);
    expect(await Promise.race(both)).toEqual(nack('inProgress', 3_000));
    hold.open();
    expect((await Promise.all(both)).map(({ reason }) => reason).sort()).toEqual(['inProgress', 'processed']);
    expect(runs).toBe(1);
  });

  test('a killed process keeps the stream until its lease is over, by no clock but that of the store', async () => {
    const { system, records, process, cursor } = fifoProcesses();
    void process({ store: dying(records) })(() => new Promise(() => {}))(numbered(1), context());
    const handle = recording();
    const ahead = { ...system, clock: { ...system.clock, nowMs: () => system.clock.nowMs() + 60_000 } };
    await system.time.advance(leaseMs - 1);
    expect(await process({ system: ahead })(handle)(numbered(1), context())).toEqual(nack('inProgress', 1));
    await system.time.advance(1);
    expect(await process()(handle)(numbered(1), context())).toEqual(ack('processed'));
    expect(handle.runs).toEqual([1]);
    expect(await cursor()).toMatchObject({ last: 1 });
  });

  test('a process that outlived its lease is told to stop, and moves nothing after another took over', async () => {
    const { system, records, process, cursor } = fifoProcesses();
    const hold = gate();
    let isCutOff = false;
    const store: RecordStore<Cursor> = {
      get: records.get,
      put: (...args) => (isCutOff ? Promise.reject(new ToolkitError('STORE_UNAVAILABLE', 'cut off')) : records.put(...args)),
    };
    let signal: AbortSignal | undefined;
    const outlived = process({ store })(async (_, context) => {
      signal = context.signal;
      isCutOff = true;
      await hold.opened;
    })(numbered(1), context());
    await system.time.advance(leaseMs - 1);
    expect(signal?.aborted).toBe(false);
    await system.time.advance(1);
    expect(signal?.aborted).toBe(true);
    const second = gate();
    const next = process()(() => second.opened)(numbered(1), context());
    await system.time.advance(0);
    isCutOff = false;
    hold.open();
    expect(await settled(system, outlived)).toEqual(nack('leaseLost'));
    expect(await cursor()).toMatchObject({ last: 0, by: 1, attempts: 1 });
    second.open();
    expect(await settled(system, next)).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 1, attempts: 0 });
  });

  test.each<[string, (StoreFault | 'none')[]]>([
    ['the answer of the claim', ['answer-lost']],
    ['the claim itself', ['failed']],
    ['the claim, in front of its own repetition', ['own-conflict']],
    ['the answer of the move', ['none', 'answer-lost']],
    ['the move itself', ['none', 'failed']],
    ['the move, in front of its own repetition', ['none', 'own-conflict']],
    ['both answers, and the move before that', ['answer-lost', 'failed', 'answer-lost']],
  ])('runs once and moves by one though the store loses %s', async (_, faults) => {
    const { system, records, process, cursor } = fifoProcesses();
    const handle = recording();
    const store = faultyStore(records, faults);
    expect(await settled(system, process({ store })(handle)(numbered(1), context()))).toEqual(ack('processed'));
    expect(await process()(handle)(numbered(1), context())).toEqual(ack('old'));
    expect(await cursor()).toMatchObject({ last: 1, runId: '' });
    expect(handle.runs).toEqual([1]);
  });

  test('a store that answers no more after the claim gives the delivery back, and the next one repeats it when the lease is over', async () => {
    const { system, records, process } = fifoProcesses();
    const handle = recording();
    expect(await settled(system, process({ store: dying(records) })(handle)(numbered(1), context()))).toEqual(nack('storeUnavailable'));
    expect(await process()(handle)(numbered(1), context())).toMatchObject(nack('inProgress'));
    await system.time.advance(leaseMs);
    expect(await process()(handle)(numbered(1), context())).toEqual(ack('processed'));
    expect(handle.runs).toEqual([1, 1]);
  });

  test('a store that never answers gives the delivery back, unrun', async () => {
    const { system, process } = fifoProcesses();
    const handle = recording();
    expect(await settled(system, process({ store: silentStore() })(handle)(numbered(1), context()))).toEqual(nack('storeUnavailable'));
    expect(handle.runs).toEqual([]);
  });
});
