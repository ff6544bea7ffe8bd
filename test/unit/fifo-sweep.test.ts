import { describe, expect, test } from 'vitest';
import { freshCursor } from '../../src/shared/fifo/cursor.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { context, fifoProcesses, leaseMs, numbered, recording } from '../support/fifo-processes.ts';

const nothing = { run: 0, removed: 0, gaps: 0, blocked: 0 };

/** Number 2 is parked, and who ended number 1 died before it looked for it. */
async function forgotten() {
  const world = fifoProcesses('park');
  const { process, records, cursor } = world;
  await process()(recording())(numbered(2), context());
  const write = { ...freshCursor(100, 1), rev: 2, last: 1, started: 1, leaseMs };
  await records.put('c~s', write, 'absent', 'forever');
  return { ...world, cursor };
}

describe('a sweep', () => {
  test('runs what was forgotten and all that follows it, a minute after it was parked and not before', async () => {
    const { system, process, cursor, parked } = await forgotten();
    const handle = recording();
    const worker = process()(handle);
    await worker(numbered(3), context());
    await system.time.advance(59_999);
    expect(await worker.sweep()).toEqual(nothing);
    await system.time.advance(1);
    expect(await worker.sweep()).toEqual({ ...nothing, run: 2 });
    expect([handle.runs, parked()]).toEqual([[2, 3], []]);
    expect(await cursor()).toMatchObject({ last: 3, runId: '', by: 0 });
  });

  test('leaves a stream alone that is held, and looks again a minute later', async () => {
    const { system, process } = await forgotten();
    const handle = recording();
    const worker = process()(handle);
    await system.time.advance(60_000);
    void process({ dies: true })(() => new Promise(() => {}))(numbered(2), context());
    await system.time.advance(0);
    expect(await worker.sweep()).toEqual(nothing);
    await system.time.advance(59_999);
    expect(await worker.sweep()).toEqual(nothing);
    await system.time.advance(1);
    expect(await worker.sweep()).toEqual({ ...nothing, run: 1 });
    expect(handle.runs).toEqual([2]);
  });

  test('of two at once runs a number once', async () => {
    const { system, process } = await forgotten();
    const handle = recording();
    await system.time.advance(60_000);
    const found = await Promise.all([process()(handle).sweep(), process()(handle).sweep()]);
    expect(found.map(({ run }) => run).sort()).toEqual([0, 1]);
    expect(handle.runs).toEqual([2]);
  });

  test('removes what is parked and done', async () => {
    const { system, process, records, parked } = fifoProcesses('park');
    await process()(recording())(numbered(2), context());
    const write = { ...freshCursor(100, 1), rev: 1, last: 2, started: 2, leaseMs };
    await records.put('c~s', write, 'absent', 'forever');
    await system.time.advance(60_000);
    expect(await process()(recording()).sweep()).toEqual({ ...nothing, removed: 1 });
    expect(parked()).toEqual([]);
  });

  test('counts a missing number as a gap, and reports it once it is missing for long', async () => {
    const { system, process, meter, parked } = fifoProcesses('park');
    const worker = process({ options: { gapTimeoutMs: 120_000 } })(recording());
    await worker(numbered(3), context());
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 1 });
    expect(meter.counts.get('ptk.fifo.gaps')).toBeUndefined();
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 1 });
    expect([meter.counts.get('ptk.fifo.gaps'), parked()]).toEqual([1, [3]]);
  });

  test('reports a blocked stream, and runs nothing of it', async () => {
    const { system, process, parked } = fifoProcesses('park');
    const handle = recording(new Error('poison'));
    const worker = process({ options: { maxAttempts: 1 } })(handle);
    expect(await worker(numbered(1), context())).toEqual(ack('parked'));
    await worker(numbered(2), context());
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, blocked: 1 });
    expect([handle.runs, parked()]).toEqual([[1], [1, 2]]);
  });

  test('counts a failure of what it runs as an attempt, and goes on with other streams', async () => {
    const { system, process, cursor, parked } = await forgotten();
    const handle = recording(new Error('down'));
    const worker = process()(handle);
    await worker(numbered(2, { 'ptk-stream': 't' }), context());
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 1 });
    expect([handle.runs, parked()]).toEqual([[2], [2, 2]]);
    expect(await cursor()).toMatchObject({ last: 1, runId: '', attempts: 1 });
    expect(await worker(numbered(1), context())).toEqual(ack('old'));
    expect(handle.runs).toEqual([2, 2]);
  });

  test('goes on where one stream cannot be looked at, and says so', async () => {
    const { system, process, logged } = await forgotten();
    const handle = recording();
    const broken = process({ look: (_, { stream }) => (stream === 'a' ? Promise.reject(new Error('cursor of another form')) : undefined) });
    const worker = broken(handle);
    await worker(numbered(2, { 'ptk-stream': 'a' }), context());
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, run: 1 });
    expect(logged).toContainEqual({ level: 'error', text: 'stream not swept', fields: { stream: 'a', reason: 'cursor of another form' } });
    expect(handle.runs).toEqual([2]);
  });

  test('looks past the many messages of a stream that waits', async () => {
    const { system, process } = fifoProcesses('park');
    const handle = recording();
    const worker = process()(handle);
    for (let number = 2; number < 702; number++) await worker(numbered(number), context());
    await system.time.advance(1);
    await worker(numbered(2, { 'ptk-stream': 't' }), context());
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual({ ...nothing, gaps: 2 });
  });

  test('whose handler gives the number back has run nothing', async () => {
    const { system, process, cursor } = await forgotten();
    const worker = process()(recording(nack('inProgress', 5)));
    await system.time.advance(60_000);
    expect(await worker.sweep()).toEqual(nothing);
    expect(await cursor()).toMatchObject({ last: 1, runId: '', attempts: 0 });
  });
});
