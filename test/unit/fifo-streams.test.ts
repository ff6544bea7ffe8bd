import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import { freshCursor } from '../../src/shared/fifo/cursor.ts';
import type { Entry } from '../../src/shared/outbox/decide.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { context, fifoProcesses, leaseMs, numbered, recording } from '../support/fifo-processes.ts';
import { gate, settled } from '../support/manual-system.ts';
import { recordingPublisher } from '../support/recording-publisher.ts';

const nothing = { run: 0, removed: 0, gaps: 0, blocked: 0 };
const epoch = (value: number) => ({ 'ptk-epoch': String(value) });
const at = (minute: number) => ({ 'ptk-origin-time': `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z` });
const parking = () => fifoProcesses('park');

describe('a newer epoch', () => {
  test('stops the stream, parked and acked, and says so once', async () => {
    const { process, cursor, parked, meter, logged } = parking();
    const handle = recording();
    const deliver = process()(handle);
    await deliver(numbered(1), context());
    expect(await deliver(numbered(1, epoch(200)), context())).toEqual(ack('parked'));
    expect(await deliver(numbered(2, epoch(200)), context())).toEqual(ack('parked'));
    expect(await deliver(numbered(2), context())).toEqual(ack('parked'));
    expect(await cursor()).toMatchObject({ last: 1, epoch: 100, blocked: { seq: 1, reason: 'epoch' } });
    expect([handle.runs, parked(), meter.counts.get('ptk.fifo.blocked epoch')]).toEqual([[1], [1, 2, 2], 1]);
    expect(logged).toHaveLength(1);
  });

  test('is followed at once where that was chosen, and copies of the one before are still known', async () => {
    const { process, cursor } = parking();
    const handle = recording();
    const deliver = process({ onNewEpoch: 'follow' })(handle);
    await deliver(numbered(1), context());
    expect(await deliver(numbered(2, epoch(200)), context())).toEqual(ack('parked'));
    expect(await deliver(numbered(1, epoch(200)), context())).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 2, epoch: 200, prevEpoch: 100, prevLast: 1 });
    expect(await deliver(numbered(1), context())).toEqual(ack('old'));
    expect(await deliver(numbered(2), context())).toMatchObject({ kind: 'deadLetter', reason: 'oldEpoch' });
    expect(handle.runs).toEqual([1, 1, 2]);
  });

  test('stops a stream whose lease is over; the run that outlived it is told so, and acks nothing', async () => {
    const { system, process, records, cursor } = parking();
    const hold = gate();
    let puts = 0;
    let isCut = true;
    const store: typeof records = {
      get: (key) => (isCut && puts > 0 ? Promise.reject(new ToolkitError('STORE_UNAVAILABLE', 'cut off')) : records.get(key)),
      put: (...args) => (isCut && puts++ > 0 ? Promise.reject(new ToolkitError('STORE_UNAVAILABLE', 'cut off')) : records.put(...args)),
    };
    const outlived = process({ store })(() => hold.opened)(numbered(1), context());
    await system.time.advance(leaseMs);
    expect(await process()(recording())(numbered(1, epoch(200)), context())).toEqual(ack('parked'));
    isCut = false;
    hold.open();
    expect(await settled(system, outlived)).toEqual(nack('leaseLost'));
    expect(await cursor()).toMatchObject({ last: 0, epoch: 100, blocked: { reason: 'epoch' } });
  });

  test('waits while the stream is held, and is found by the sweep', async () => {
    const { system, process, cursor, parked } = parking();
    void process({ dies: true })(() => new Promise(() => {}))(numbered(1), context());
    await system.time.advance(0);
    const worker = process({ onNewEpoch: 'follow' })(recording());
    expect(await worker(numbered(1, epoch(200)), context())).toEqual(ack('parked'));
    expect(await cursor()).toMatchObject({ epoch: 100 });
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, run: 1 });
    expect([await cursor(), parked()]).toMatchObject([{ epoch: 200, last: 1, prevLast: 0 }, []]);
  });
});

describe('an old number that nobody has seen', () => {
  test('is a dead letter, where a number is used again after its counter went back', async () => {
    const { process, cursor } = parking();
    const deliver = process()(recording());
    for (const number of [1, 2, 3]) await deliver(numbered(number, at(number)), context());
    expect(await deliver(numbered(2, at(2)), context())).toEqual(ack('old'));
    expect(await deliver(numbered(2, { ...at(9), 'ptk-key': 'another' }), context())).toMatchObject({
      kind: 'deadLetter',
      reason: 'sequenceReused',
      detail: 'number 2 is done, and not by this message',
    });
    expect(await cursor()).toMatchObject({ last: 3 });
  });

  test('and where another message waits under the same number; a copy of that one is just acked', async () => {
    const { process, parked } = parking();
    const handle = recording();
    const deliver = process()(handle);
    expect(await deliver(numbered(2), context())).toEqual(ack('parked'));
    expect(await deliver(numbered(2), context())).toEqual(ack('parked'));
    expect(await deliver(numbered(2, { 'ptk-key': 'another' }), context())).toMatchObject({
      kind: 'deadLetter',
      reason: 'sequenceReused',
      detail: 'another message waits under number 2',
    });
    expect(await deliver(numbered(1), context())).toEqual(ack('processed'));
    expect([handle.runs, parked()]).toEqual([[1, 2], []]);
  });

  test('and where it is parked the sweep takes it there', async () => {
    const { system, process, records, deadLetters, parked } = parking();
    await process()(recording())(numbered(3, { ...at(9), 'ptk-key': 'another' }), context());
    const done = { ...freshCursor(100, 1), rev: 1, last: 5, recent: [{ seq: 3, key: 'k3', originMs: 1 }] };
    await records.put('c~s', done, 'absent', 'forever');
    await system.time.advance(60_000);
    expect(await process()(recording()).sweep()).toEqual({ ...nothing, removed: 1 });
    expect([deadLetters.kept, parked()]).toMatchObject([[{ reason: 'sequenceReused' }], []]);
  });
});

describe('a consumer that comes to a stream in mid-stream', () => {
  test('starts at the number it is given; what is below is a dead letter, and not acked away', async () => {
    const { process, cursor } = parking();
    const handle = recording();
    const deliver = process({ startAt: 8 })(handle);
    expect(await deliver(numbered(7), context())).toMatchObject({ kind: 'deadLetter', reason: 'beforeStart' });
    expect(await deliver(numbered(8), context())).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 8, start: 8 });
    expect(handle.runs).toEqual([8]);
  });

  test('starts at the first number that it sees, the lowest of those that come within a second', async () => {
    const { system, process, cursor, parked } = parking();
    const handle = recording();
    const deliver = process({ startAt: 'firstSeen', options: { leaseMs } })(handle);
    const deliveries = [deliver(numbered(9), context())];
    await system.time.advance(999);
    deliveries.push(process({ startAt: 'firstSeen' })(handle)(numbered(8), context()));
    await system.time.advance(0);
    expect(await cursor()).toBeUndefined();
    const verdicts = await settled(system, Promise.all(deliveries));
    expect(verdicts.map(({ kind }) => kind)).toEqual(['ack', 'ack']);
    expect([handle.runs, parked()]).toEqual([[8, 9], []]);
    expect(await cursor()).toMatchObject({ last: 9, start: 8 });
    expect(await deliver(numbered(7), context())).toMatchObject({ kind: 'deadLetter', reason: 'beforeStart' });
  });
});

describe('a diverted stream', () => {
  test('goes on to its lane, in its order, from the number that failed, while other streams stay', async () => {
    const { process, cursor } = parking();
    const handle = recording(new Error('poison'), new Error('poison'));
    const publisher = recordingPublisher();
    const deliver = process({ onPoison: { divert: { publisher, topic: 'lane' } }, options: { maxAttempts: 2 } })(handle);
    expect(await deliver(numbered(2), context())).toEqual(ack('parked'));
    expect(await deliver(numbered(1), context())).toEqual(nack('failed'));
    expect(await deliver(numbered(1), context())).toEqual(ack('skipped'));
    expect(await deliver(numbered(3), context())).toEqual(ack('skipped'));
    expect(await deliver(numbered(1, { 'ptk-stream': 't' }), context())).toEqual(ack('processed'));
    expect(publisher.numbers()).toEqual([1, 2, 3]);
    expect(publisher.published.map(({ topic }) => topic)).toEqual(['lane', 'lane', 'lane']);
    expect(handle.runs).toEqual([1, 1, 1]);
    expect(await cursor()).toMatchObject({ last: 3, attempts: 0, blocked: { seq: 1, reason: 'attempts', lane: 'lane' } });
  });

  test('waits where its lane cannot be reached, or is not known', async () => {
    const { process, cursor } = parking();
    const publisher = { publish: () => Promise.reject(new Error('down')) };
    const options = { maxAttempts: 1 };
    const deliver = process({ onPoison: { divert: { publisher, topic: 'lane' } }, options })(recording(new Error('poison')));
    expect(await deliver(numbered(1), context())).toEqual(nack('failed'));
    expect(await cursor()).toMatchObject({ last: 0, runId: '', blocked: null });
    const working = process({ onPoison: { divert: { publisher: recordingPublisher(), topic: 'lane' } }, options })(
      recording(new Error('p')),
    );
    expect(await working(numbered(1), context())).toEqual(ack('skipped'));
    expect(await process()(recording())(numbered(2), context())).toEqual(nack('blocked'));
    expect(await cursor()).toMatchObject({ last: 1, runId: '' });
  });
});

describe('a number that does not come', () => {
  const entry = (state: Entry['state'], hasBody = false) => ({
    state,
    topic: 't',
    message: hasBody ? { data: new Uint8Array(), attributes: { 'ptk-seq': '2' } } : null,
  });
  /** Number 1 is done, 5 is parked, and the outbox knows what is said of 2, 3 and 4. */
  async function missing(entries: Record<number, ReturnType<typeof entry>>, onMissing: 'report' | 'skip' = 'report') {
    const world = parking();
    const publisher = recordingPublisher();
    const ledger = { find: async (_stream: string, _epoch: number, seq: number) => entries[seq] };
    const handle = recording();
    const worker = world.process({ gaps: { ledger, publisher, onMissing }, options: { leaseMs, gapTimeoutMs: 120_000 } })(handle);
    await worker(numbered(1), context());
    await worker(numbered(5), context());
    await world.system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 1 });
    expect([world.logged, publisher.published]).toEqual([[], []]);
    await world.system.time.advance(60_000);
    return { ...world, worker, publisher, handle };
  }

  test('is reported, with what its publisher wrote down, and published again where the outbox has its message', async () => {
    const { worker, publisher, logged, handle } = await missing({ 2: entry('published', true), 3: entry('pending') });
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 1 });
    expect(publisher.numbers()).toEqual([2]);
    expect(logged.at(-1)?.fields).toMatchObject({ seq: 2, missing: 3, 'published again': 1, pending: 1, unknown: 1 });
    expect(handle.runs).toEqual([1]);
  });

  test('is passed over where that was chosen and nobody wrote it down; if it still comes it is a dead letter', async () => {
    const { worker, cursor, handle, meter } = await missing({}, 'skip');
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 1, run: 1 });
    expect([handle.runs, meter.counts.get('ptk.fifo.skipped')]).toEqual([[1, 5], 1]);
    expect(await cursor()).toMatchObject({ last: 5, skipped: [2, 3, 4] });
    expect(await worker(numbered(3), context())).toMatchObject({ kind: 'deadLetter', reason: 'skipped' });
    expect(await worker(numbered(3, { 'ptk-tombstone': 'late' }), context())).toEqual(ack('old'));
  });

  test('is passed over only up to one that was written down', async () => {
    const { worker, cursor, handle } = await missing({ 3: entry('pending') }, 'skip');
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 1 });
    expect([handle.runs, await cursor()]).toMatchObject([[1], { last: 2, skipped: [2] }]);
  });

  test('is not passed over once it has come and is run', async () => {
    const { system, process, cursor, parked } = parking();
    const hold = gate();
    let second: Promise<unknown> | undefined;
    const find = async () => {
      second ??= process()(() => hold.opened)(numbered(2), context());
      await system.time.advance(0);
      return undefined;
    };
    const ledger = { find };
    const gaps = { ledger, publisher: recordingPublisher(), onMissing: 'skip' } as const;
    const worker = process({ gaps, options: { leaseMs, gapTimeoutMs: 0 } })(recording());
    for (const number of [1, 3]) await worker(numbered(number), context());
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 1 });
    expect(await cursor()).toMatchObject({ last: 1, by: 2, skipped: [] });
    hold.open();
    expect(await second).toEqual(ack('processed'));
    expect([await cursor(), parked()]).toMatchObject([{ last: 3, skipped: [] }, []]);
  });

  test('of a stream without a cursor is for an operator: nobody knows where it stood', async () => {
    const { system, process, cursor, parked } = parking();
    const ledger = { find: async () => undefined };
    const gaps = { ledger, publisher: recordingPublisher(), onMissing: 'skip' } as const;
    const worker = process({ gaps, options: { leaseMs, gapTimeoutMs: 0 } })(recording());
    await worker(numbered(5), context());
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 1 });
    expect([await cursor(), parked()]).toEqual([undefined, [5]]);
  });
});
