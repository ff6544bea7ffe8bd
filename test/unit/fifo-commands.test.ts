import { describe, expect, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { freshCursor } from '../../src/shared/fifo/cursor.ts';
import { ack } from '../../src/shared/verdict.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { context, fifoProcesses, leaseMs, numbered, recording } from '../support/fifo-processes.ts';
import { gate } from '../support/manual-system.ts';

const epoch = (value: number) => ({ 'ptk-epoch': String(value) });
const poison = () => recording(new Error('poison'));

/** Number 1 has used up its only attempt; 1, 2 and 3 are parked. */
async function blockedStream() {
  const world = fifoProcesses('park');
  const handle = poison();
  const worker = world.process({ options: { leaseMs, maxAttempts: 1 } })(handle);
  for (const number of [1, 2, 3]) expect(await worker(numbered(number), context())).toEqual(ack('parked'));
  return { ...world, handle, worker };
}

describe('status', () => {
  test('of a stream that nobody has seen', async () => {
    const { commands } = fifoProcesses();
    expect(await commands().status('s')).toEqual({
      ...{ stream: 's', state: 'unknown', last: 0, epoch: 0, round: 0, attempts: 0, heldMs: 0, blocked: null, skipped: 0, parked: 0 },
      lowestParked: null,
    });
  });

  test('of one that waits, is held, and is idle', async () => {
    const { system, process, commands } = fifoProcesses('park');
    const hold = gate();
    const worker = process()(() => hold.opened);
    await worker(numbered(3), context());
    const first = worker(numbered(1), context());
    await system.time.advance(500);
    const lowestParked = { epoch: 100, seq: 3, parkedAtMs: expect.any(Number) };
    expect(await commands().status('s')).toMatchObject({ state: 'held', heldMs: 2_500, last: 0, epoch: 100, parked: 1, lowestParked });
    hold.open();
    await first;
    expect(await commands().status('s')).toMatchObject({ state: 'waiting', heldMs: 0, last: 1 });
    await worker(numbered(2), context());
    expect(await commands().status('s')).toMatchObject({ state: 'idle', last: 3, parked: 0 });
  });

  test('blocked lists the streams that stand still, and only those', async () => {
    const { worker, commands } = await blockedStream();
    await worker(numbered(2, { 'ptk-stream': 't' }), context());
    const found = await commands().blocked();
    expect(found).toMatchObject([{ stream: 's', state: 'blocked', attempts: 1, parked: 3, blocked: { seq: 1, reason: 'attempts' } }]);
  });
});

describe('resume', () => {
  test('goes on with the number at which the stream stopped, in this process', async () => {
    const { worker, commands, handle, parked } = await blockedStream();
    const done = await commands({ sweep: worker.sweep }).resume('s');
    expect(done).toMatchObject({ kind: 'done', status: { state: 'idle', last: 3, attempts: 0, blocked: null } });
    expect([handle.runs, parked()]).toEqual([[1, 1, 2, 3], []]);
  });

  test('or in whichever sweeps next, for which it is due at once', async () => {
    const { worker, commands, handle } = await blockedStream();
    expect(await commands().resume('s')).toMatchObject({ kind: 'done', status: { state: 'idle', last: 0, parked: 3 } });
    expect(await worker.sweep()).toMatchObject({ run: 3 });
    expect(handle.runs).toEqual([1, 1, 2, 3]);
  });

  test('is refused without a cursor', async () => {
    expect(await fifoProcesses().commands().resume('s')).toEqual({ kind: 'refused', reason: 'stream s has no cursor of consumer c' });
  });
});

describe('skip', () => {
  test('makes a dead letter of the parked message, and the stream goes on behind it', async () => {
    const { worker, commands, handle, deadLetters, cursor, parked } = await blockedStream();
    expect(await commands({ sweep: worker.sweep }).skip('s', 1)).toMatchObject({ kind: 'done', status: { last: 3, skipped: 1 } });
    expect([handle.runs, parked()]).toEqual([[1, 2, 3], []]);
    expect(deadLetters.kept).toMatchObject([{ reason: 'skipped', message: { messageId: 'm1' } }]);
    expect(await cursor()).toMatchObject({ skipped: [1], blocked: null });
    expect(await worker(numbered(1), context())).toMatchObject({ kind: 'deadLetter', reason: 'skipped' });
  });

  test('of a number that never came', async () => {
    const { process, commands } = fifoProcesses('park');
    const handle = recording();
    const worker = process()(handle);
    for (const number of [1, 3]) await worker(numbered(number), context());
    expect(await commands({ sweep: worker.sweep }).skip('s', 2)).toMatchObject({ kind: 'done', status: { last: 3 } });
    expect(handle.runs).toEqual([1, 3]);
  });

  test('loses no message that is parked while it goes on', async () => {
    const { system, process, commands, store, deadLetters, parked } = fifoProcesses('park');
    const worker = process({ options: { leaseMs, maxAttempts: 1 } })(recording(new Error('poison')));
    await worker(numbered(1), context());
    await store.unpark({ consumer: 'c', stream: 's', epoch: 100, seq: 1 });
    const look: typeof store.look = async (...args) => {
      const seen = await store.look(...args);
      expect(await worker(numbered(1), context())).toEqual(ack('parked'));
      return seen;
    };
    expect(await commands({ store: { ...store, look } }).skip('s', 1)).toMatchObject({ kind: 'done' });
    await system.time.advance(60_000);
    await worker.sweep();
    expect([parked(), deadLetters.kept]).toMatchObject([[], [{ reason: 'skipped', message: { messageId: 'm1' } }]]);
  });

  test('is refused for any other number than the next', async () => {
    const { commands, cursor } = await blockedStream();
    const reason = 'number 2 of stream s is not the next one, which is 1';
    expect(await commands().skip('s', 2)).toEqual({ kind: 'refused', reason });
    expect(await cursor()).toMatchObject({ last: 0, skipped: [] });
  });

  test('leaves everything as it is where the dead letter cannot be stored', async () => {
    const { commands, cursor, parked } = await blockedStream();
    const deadLetters = { publish: () => Promise.reject(new Error('topic down')) };
    await expect(commands({ deadLetters }).skip('s', 1)).rejects.toThrow('topic down');
    expect([(await cursor())?.last, parked()]).toEqual([0, [1, 2, 3]]);
  });
});

describe('a stream that is held', () => {
  test('is left alone unless it is forced; then its holder commits nothing', async () => {
    const { system, process, commands, cursor } = fifoProcesses('park');
    const hold = gate();
    const first = process()(() => hold.opened)(numbered(1), context());
    await system.time.advance(0);
    const reason = 'stream s is held for up to 3000 ms more; force takes it from its holder';
    expect(await commands().skip('s', 1)).toEqual({ kind: 'refused', reason });
    expect(await commands().skip('s', 1, { force: true })).toMatchObject({ kind: 'done', status: { last: 1 } });
    hold.open();
    expect(await first).toMatchObject({ kind: 'nack', reason: 'leaseLost' });
    expect(await cursor()).toMatchObject({ last: 1, skipped: [1], runId: '' });
  });

  test('by a command that died is free ten seconds later', async () => {
    const { system, records, commands } = fifoProcesses();
    await records.put('c~s', { ...freshCursor(100, 1), rev: 3, runId: 'command', leaseMs: 10_000 }, 'absent', 'forever');
    await system.time.advance(9_999);
    expect(await commands().resume('s')).toMatchObject({ kind: 'refused' });
    await system.time.advance(1);
    expect(await commands().resume('s')).toMatchObject({ kind: 'done' });
  });
});

describe('reset', () => {
  test('follows the newer epoch that waits, and what came of the old one late is a dead letter', async () => {
    const { process, commands, handle, deadLetters } = await (async () => {
      const world = fifoProcesses('park');
      return { ...world, handle: recording() };
    })();
    const worker = process()(handle);
    for (const number of [1, 3]) await worker(numbered(number), context());
    for (const number of [2, 1]) expect(await worker(numbered(number, epoch(200)), context())).toEqual(ack('parked'));
    const done = await commands({ sweep: worker.sweep }).reset('s', {});
    expect(done).toMatchObject({ kind: 'done', status: { state: 'idle', epoch: 200, last: 2, parked: 0 } });
    expect(handle.runs).toEqual([1, 1, 2]);
    expect(deadLetters.kept).toMatchObject([{ reason: 'oldEpoch', message: { messageId: 'm3' } }]);
  });

  test('gives a stream whose cursor was deleted its position again', async () => {
    const { process, commands, cursor } = fifoProcesses('park');
    const handle = recording();
    const worker = process()(handle);
    await worker(numbered(101), context());
    expect(await commands({ sweep: worker.sweep }).reset('s', { to: 100 })).toMatchObject({ kind: 'done', status: { last: 101 } });
    expect([handle.runs, await cursor()]).toMatchObject([[101], { epoch: 100, start: 101 }]);
  });

  test.each([
    [{}, 'stream s has neither a cursor nor parked messages, so its epoch must be given'],
    [{ to: -1 }, 'to is -1; it must be a number from 0'],
    [{ to: 1.5 }, 'to is 1.5; it must be a number from 0'],
  ])('of %j to an unknown stream is refused', async (position, reason) => {
    expect(await fifoProcesses().commands().reset('s', position)).toEqual({ kind: 'refused', reason });
  });

  test('never goes to an older epoch', async () => {
    const { process, commands } = fifoProcesses('park');
    await process()(recording())(numbered(1), context());
    const reason = 'epoch 99 of stream s is over; it has 100';
    expect(await commands().reset('s', { epoch: 99 })).toEqual({ kind: 'refused', reason });
  });
});

describe('replay', () => {
  test('has numbers handled again, in a round of their own', async () => {
    const { process, commands, cursor } = fifoProcesses('park');
    const rounds: unknown[] = [];
    const worker = process()(async ({ attributes }, { round }) => void rounds.push([attributes['ptk-seq'], round]));
    for (const number of [1, 2, 3]) await worker(numbered(number), context());
    expect(await commands().replay('s', 2)).toMatchObject({ kind: 'done', status: { last: 1, round: 1 } });
    for (const number of [1, 2, 3]) expect((await worker(numbered(number), context())).kind).toBe('ack');
    expect(rounds).toEqual([
      ['1', undefined],
      ['2', undefined],
      ['3', undefined],
      ['2', 1],
      ['3', 1],
    ]);
    expect(await cursor()).toMatchObject({ last: 3, round: 1 });
  });

  test('has them handled again though dedup has seen them, once', async () => {
    const { system, process, commands } = fifoProcesses('park');
    const dedup = createDedup({ consumer: 'c', store: memoryRecordStore<DedupRecord>(system.clock), system, log: silentLog });
    const handle = recording();
    const worker = process()(dedup(handle));
    for (const number of [1, 2]) await worker(numbered(number), context());
    await commands().replay('s', 1);
    for (const number of [1, 2, 1, 2]) await worker(numbered(number), context());
    expect(handle.runs).toEqual([1, 2, 1, 2]);
  });

  test.each([0, 3, 1.5])('from %s of a stream whose next number is 2 is refused', async (from) => {
    const { process, commands } = fifoProcesses('park');
    await process()(recording())(numbered(1), context());
    const reason = `from is ${from}; it must be a number from 1 to 2, the next one of stream s`;
    expect(await commands().replay('s', from)).toEqual({ kind: 'refused', reason });
  });
});
