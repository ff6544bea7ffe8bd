import { describe, expect, test } from 'vitest';
import type { Cursor } from '../../src/shared/fifo/cursor.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { silentStore } from '../support/faulty-store.ts';
import { context, fifoProcesses, leaseMs, numbered, recording } from '../support/fifo-processes.ts';
import { gate, settled } from '../support/manual-system.ts';

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

/** A process that waits for early messages in hand, and how often its store was asked and written. */
function counted(options: object = {}) {
  const world = fifoProcesses('park');
  const { records } = world;
  const calls = { get: 0, put: 0 };
  const store: RecordStore<Cursor> = {
    get: (key) => {
      calls.get += 1;
      return records.get(key);
    },
    put: (...args) => {
      calls.put += 1;
      return records.put(...args);
    },
  };
  return { ...world, calls, worker: world.process({ store, options: { leaseMs, holdMs: 5_000, ...options } }) };
}

describe('a run', () => {
  test('takes the numbers that follow from hand, keeps its lease, and writes the cursor once for each', async () => {
    const { system, worker, calls, cursor, parked } = counted();
    const handle = recording();
    const deliver = worker(handle);
    const all = [5, 3, 4, 2].map((number) => deliver(numbered(number), context()));
    await system.time.advance(0);
    expect(calls).toEqual({ get: 4, put: 0 });
    all.push(deliver(numbered(1), context()));
    expect(await settled(system, Promise.all(all))).toEqual(upTo(5).map(() => ack('processed')));
    expect([handle.runs, parked()]).toEqual([[1, 2, 3, 4, 5], []]);
    expect(calls.put).toBe(1 + 5);
    expect(await cursor()).toMatchObject({ last: 5, rev: 6, runId: '', by: 0 });
  });

  test('answers a number as soon as the next one stands for the stream, and not before the cursor has moved', async () => {
    const { system, worker, cursor } = counted();
    const holds = [gate(), gate()];
    const deliver = worker(async ({ attributes }) => holds[Number(attributes['ptk-seq']) - 1]?.opened);
    const second = deliver(numbered(2), context());
    await system.time.advance(0);
    const first = deliver(numbered(1), context());
    await system.time.advance(0);
    expect(await cursor()).toMatchObject({ last: 0, by: 1, started: 1 });
    holds[0]?.open();
    expect(await first).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 1, by: 2, started: 2 });
    holds[1]?.open();
    expect(await second).toEqual(ack('processed'));
  });

  test('writes once for as many as it may, and answers none of them before', async () => {
    const { system, worker, calls, cursor } = counted({ commitEvery: 3 });
    const hold = gate();
    const handle = recording();
    const deliver = worker(async (message, own) => {
      await handle(message, own);
      if (message.attributes['ptk-seq'] === '3') await hold.opened;
    });
    const answered: number[] = [];
    const deliveries = [2, 3, 4, 5, 1].map((number) => deliver(numbered(number), context()).then(() => answered.push(number)));
    await system.time.advance(0);
    expect([handle.runs, answered, (await cursor())?.last]).toEqual([[1, 2, 3], [], 0]);
    hold.open();
    await settled(system, Promise.all(deliveries));
    expect([handle.runs, answered.toSorted()]).toEqual([upTo(5), upTo(5)]);
    expect(calls.put).toBe(1 + 2);
  });

  test('commits what is done when a number of its group fails, and gives back that number alone', async () => {
    const { system, worker, cursor } = counted({ commitEvery: 3 });
    const deliver = worker(recording(undefined as never, new Error('not now')));
    const deliveries = [2, 3, 1].map((number) => deliver(numbered(number), context()));
    await system.time.advance(0);
    expect(await cursor()).toMatchObject({ last: 1, attempts: 1, runId: '' });
    expect(await deliveries[2]).toEqual(ack('processed'));
    expect(await deliveries[0]).toEqual(nack('failed'));
  });

  test('gives back its whole group when another process has taken the stream, and the number that would have followed', async () => {
    const { system, worker, records, cursor, meter } = counted({ commitEvery: 2 });
    const hold = gate();
    const deliver = worker(({ attributes }) => (attributes['ptk-seq'] === '2' ? hold.opened : Promise.resolve()));
    const deliveries = [2, 3, 1].map((number) => deliver(numbered(number), context()));
    await system.time.advance(0);
    const held = await records.get('c~s');
    if (!held) throw new Error('no cursor');
    await records.put('c~s', { ...held.record, rev: held.record.rev + 1, runId: 'other' }, held.version, 'forever');
    hold.open();
    expect(await settled(system, Promise.all(deliveries))).toEqual([nack('leaseLost'), nack('inProgress'), nack('leaseLost')]);
    expect(await cursor()).toMatchObject({ last: 0, runId: 'other' });
    expect(meter.counts.get('ptk.fifo.lease_lost')).toBe(1);
  });

  test('begins no further number of its group once its lease is lost', async () => {
    const { system, worker, records } = counted({ commitEvery: 3 });
    const hold = gate();
    const handle = recording();
    const deliver = worker(async (message, own) => {
      await handle(message, own);
      await hold.opened;
    });
    const deliveries = [2, 3, 1].map((number) => deliver(numbered(number), context()));
    await system.time.advance(0);
    const held = await records.get('c~s');
    if (!held) throw new Error('no cursor');
    await records.put('c~s', { ...held.record, rev: held.record.rev + 1, runId: 'other' }, held.version, 'forever');
    await system.time.advance(leaseMs / 3);
    hold.open();
    await system.time.advance(0);
    expect(handle.runs).toEqual([1]);
    expect(await deliveries[2]).toEqual(nack('leaseLost'));
  });

  test('after a death runs one number for each write, so that the one that takes its process down is found', async () => {
    const { system, process, calls, worker } = counted({ commitEvery: 3 });
    void process({ dies: true })(() => new Promise(() => {}))(numbered(1), context());
    await system.time.advance(leaseMs);
    const deliver = worker(recording());
    const deliveries = [2, 3, 1].map((number) => deliver(numbered(number), context()));
    await settled(system, Promise.all(deliveries));
    expect(calls.put).toBe(1 + 3);
  });

  test('goes on with what is parked, read ahead, for one write each', async () => {
    const { system, process, records, parked, cursor } = fifoProcesses('park');
    const other = process()(recording());
    for (const number of [2, 3, 4, 5]) await other(numbered(number), context());
    let looks = 0;
    const handle = recording();
    const worker = process({
      look: () => {
        looks += 1;
        return undefined;
      },
    })(handle);
    expect(await settled(system, worker(numbered(1), context()))).toEqual(ack('processed'));
    expect([handle.runs, parked(), looks]).toEqual([upTo(5), [], 2]);
    expect(await cursor()).toMatchObject({ last: 5, runId: '' });
    expect((await records.get('c~s'))?.record.rev).toBe(2 + 1 + 4);
  });

  test('is not begun with a store that is silent: what waits in hand is parked or given back in its time', async () => {
    const { system, process } = fifoProcesses('park');
    const deliver = process({ store: silentStore<Cursor>(), options: { holdMs: 5_000 } })(recording());
    const deliveries = [1, 2].map((number) => deliver(numbered(number), context()));
    expect(await settled(system, Promise.all(deliveries))).toEqual([nack('storeUnavailable'), nack('storeUnavailable')]);
  });
});

describe('what waits in hand', () => {
  test('is parked at once where no place is left for others', async () => {
    const { system, worker, parked } = counted();
    const deliver = worker(recording());
    expect(await deliver(numbered(2), { ...context(), places: 1 })).toEqual(ack('parked'));
    void deliver(numbered(3), { ...context(), places: 2 });
    expect(await deliver(numbered(4), { ...context(), places: 2 })).toEqual(ack('parked'));
    await system.time.advance(0);
    expect(parked()).toEqual([2, 4]);
  });

  test('is bounded over all streams', async () => {
    const { worker, parked, system } = counted({ holdMessages: 1 });
    const deliver = worker(recording());
    void deliver(numbered(2), context());
    await system.time.advance(0);
    expect(await deliver(numbered(2, { 'ptk-stream': 't' }), context())).toEqual(ack('parked'));
    expect(parked()).toEqual([2]);
  });

  test('is parked when its time is over, and when its signal aborts', async () => {
    const { worker, parked, system } = counted();
    const deliver = worker(recording());
    const abort = new AbortController();
    const deliveries = [deliver(numbered(2), { signal: abort.signal }), deliver(numbered(3), context())];
    await system.time.advance(1_000);
    abort.abort();
    expect(await deliveries[0]).toEqual(ack('parked'));
    await system.time.advance(3_999);
    expect(parked()).toEqual([2]);
    await system.time.advance(1);
    expect(await deliveries[1]).toEqual(ack('parked'));
  });

  test('is also a copy of what another process runs, on a pull: until that one is done, or its lease is over', async () => {
    const { system, process } = fifoProcesses('park');
    const pulled = () => ({ ...context(), places: 100 });
    const hold = gate();
    const first = process()(() => hold.opened)(numbered(1), pulled());
    await system.time.advance(0);
    const second = process()(recording())(numbered(1), pulled());
    let isAnswered = false;
    void second.then(() => {
      isAnswered = true;
    });
    await system.time.advance(20_000);
    expect(isAnswered).toBe(false);
    hold.open();
    expect(await first).toEqual(ack('processed'));
    await system.time.advance(leaseMs);
    expect(await second).toEqual(ack('old'));

    void process({ dies: true })(() => new Promise(() => {}))(numbered(2), pulled());
    await system.time.advance(0);
    const heir = process()(recording())(numbered(2), pulled());
    await system.time.advance(leaseMs);
    expect(await heir).toEqual(ack('processed'));
  });

  test('finds by itself that another process has moved the cursor, a quarter of a second later at most', async () => {
    const { worker, process, system } = counted();
    const handle = recording();
    const second = worker(handle)(numbered(2), context());
    await system.time.advance(0);
    expect(await process()(handle)(numbered(1), context())).toEqual(ack('processed'));
    await system.time.advance(250);
    expect(await second).toEqual(ack('processed'));
    expect(handle.runs).toEqual([1, 2]);
  });
});
