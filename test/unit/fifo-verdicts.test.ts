import { describe, expect, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { ack, deadLetter, nack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { context, fifoProcesses, numbered, recording } from '../support/fifo-processes.ts';
import { gate } from '../support/manual-system.ts';

describe('fifo: what the handler says', () => {
  test('a dead letter is published, and then its number is done', async () => {
    const { deadLetters, process, cursor } = fifoProcesses();
    const handle = recording(deadLetter('refused', 'no such customer'));
    const deliver = process()(handle);
    expect(await deliver(numbered(1), context())).toEqual(ack('skipped'));
    expect(deadLetters.kept).toEqual([{ message: numbered(1), reason: 'refused', detail: 'no such customer' }]);
    expect(await cursor()).toMatchObject({ last: 1, runId: '' });
    expect(await deliver(numbered(2), context())).toEqual(ack('processed'));
    expect(handle.runs).toEqual([1, 2]);
  });

  test('an error that no retry can mend is a dead letter too', async () => {
    const { deadLetters, process, cursor } = fifoProcesses();
    const handle = recording(new ToolkitError('REFUSED', 'the sink answered 400'));
    expect(await process()(handle)(numbered(1), context())).toEqual(ack('skipped'));
    expect(deadLetters.kept).toMatchObject([{ reason: 'refused', detail: 'the sink answered 400' }]);
    expect(await cursor()).toMatchObject({ last: 1 });
  });

  test('a dead letter that cannot be published moves nothing and frees the stream', async () => {
    const { process, cursor } = fifoProcesses();
    const deadLetters = { publish: () => Promise.reject(new Error('no such topic')) };
    const handle = recording(deadLetter('refused', 'no'));
    expect(await process({ deadLetters })(handle)(numbered(1), context())).toEqual(nack('failed'));
    expect(await cursor()).toMatchObject({ last: 0, runId: '' });
    expect(await process()(handle)(numbered(1), context())).toEqual(ack('processed'));
  });

  test('a nack of its own is passed on with its wait and frees the stream', async () => {
    const { process, cursor } = fifoProcesses();
    expect(await process()(recording(nack('inProgress', 700)))(numbered(1), context())).toEqual(nack('inProgress', 700));
    expect(await cursor()).toMatchObject({ last: 0, runId: '' });
  });

  test('an ack of its own is passed on and its number is done', async () => {
    const { process, cursor } = fifoProcesses();
    expect(await process()(recording(ack('scheduled')))(numbered(1), context())).toEqual(ack('scheduled'));
    expect(await cursor()).toMatchObject({ last: 1 });
  });
});

describe('fifo: what the message says', () => {
  test('a tombstone moves the cursor in its turn and runs nothing', async () => {
    const { process, cursor } = fifoProcesses();
    const handle = recording();
    const deliver = process()(handle);
    expect(await deliver(numbered(2, { 'ptk-tombstone': 'refused' }), context())).toEqual(nack('early', 100));
    await deliver(numbered(1), context());
    expect(await deliver(numbered(2, { 'ptk-tombstone': 'refused' }), context())).toEqual(ack('tombstone'));
    expect(await cursor()).toMatchObject({ last: 2, runId: '' });
    expect(handle.runs).toEqual([1]);
  });

  test('a message without a stream goes straight through, with its verdicts and failures', async () => {
    const { process, cursor } = fifoProcesses();
    const handle = recording(new Error('boom'), deadLetter('refused', 'no'));
    const deliver = process()(handle);
    expect(await deliver(testMessage(), context())).toEqual(nack('failed'));
    expect(await deliver(testMessage(), context())).toEqual(deadLetter('refused', 'no'));
    expect(await deliver(testMessage(), context())).toEqual(ack('processed'));
    expect(handle.runs).toHaveLength(3);
    expect(await cursor()).toBeUndefined();
  });

  test('an older epoch is a dead letter, a newer one waits, and neither runs or moves', async () => {
    const { process, cursor } = fifoProcesses();
    const handle = recording();
    const deliver = process()(handle);
    await deliver(numbered(1), context());
    expect(await deliver(numbered(2, { 'ptk-epoch': '99' }), context())).toMatchObject({ kind: 'deadLetter', reason: 'oldEpoch' });
    expect(await deliver(numbered(1, { 'ptk-epoch': '101' }), context())).toEqual(nack('blocked', 1_000));
    expect(await cursor()).toMatchObject({ last: 1, epoch: 100, blocked: { seq: 1, reason: 'epoch' } });
    expect(handle.runs).toEqual([1]);
  });

  test.each([['1e3'], ['0'], ['']])('a sequence of %j is a dead letter and touches no cursor', async (sequence) => {
    const { process, cursor } = fifoProcesses();
    const handle = recording();
    expect(await process()(handle)(numbered(1, { 'ptk-seq': sequence }), context())).toMatchObject({
      kind: 'deadLetter',
      reason: 'malformed',
    });
    expect(handle.runs).toEqual([]);
    expect(await cursor()).toBeUndefined();
  });

  test('streams and consumers do not hold each other up', async () => {
    const { system, process } = fifoProcesses();
    const hold = gate();
    const held = process()(() => hold.opened)(numbered(1), context());
    await system.time.advance(0);
    expect(await process()(recording())(numbered(1, { 'ptk-stream': 't' }), context())).toEqual(ack('processed'));
    expect(await process({ consumer: 'd' })(recording())(numbered(1), context())).toEqual(ack('processed'));
    hold.open();
    await held;
  });
});

describe('fifo(dedup(handle))', () => {
  test('one key under two numbers runs once, and both numbers pass', async () => {
    const { system, process, cursor } = fifoProcesses();
    const store = memoryRecordStore<DedupRecord>(system.clock);
    const handle = recording();
    const deliver = process()(createDedup({ consumer: 'c', store, system, log: silentLog })(handle));
    expect(await deliver(numbered(1, { 'ptk-key': 'same' }), context())).toEqual(ack('processed'));
    expect(await deliver(numbered(2, { 'ptk-key': 'same' }), context())).toEqual(ack('duplicate'));
    expect(await deliver(numbered(3), context())).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 3 });
    expect(handle.runs).toEqual([1, 3]);
  });

  test('a run that fails frees both the key and the stream', async () => {
    const { system, process } = fifoProcesses();
    const store = memoryRecordStore<DedupRecord>(system.clock);
    const handle = recording(new Error('boom'));
    const deliver = process()(createDedup({ consumer: 'c', store, system, log: silentLog })(handle));
    expect(await deliver(numbered(1), context())).toEqual(nack('failed'));
    expect(await deliver(numbered(1), context())).toEqual(ack('processed'));
  });

  test('another message under a finished key is a dead letter whose number passes', async () => {
    const { system, deadLetters, process, cursor } = fifoProcesses();
    const store = memoryRecordStore<DedupRecord>(system.clock);
    const deliver = process()(createDedup({ consumer: 'c', store, system, log: silentLog })(recording()));
    await deliver(numbered(1, { 'ptk-key': 'same' }), context());
    expect(await deliver(numbered(2, { 'ptk-key': 'same', colour: 'red' }), context())).toEqual(ack('skipped'));
    expect(deadLetters.kept).toMatchObject([{ reason: 'conflict' }]);
    expect(await cursor()).toMatchObject({ last: 2 });
  });
});

describe('fifo: waiting in the process', () => {
  const options = { holdMs: 1_000 };

  test('early deliveries run as soon as the one before them is done', async () => {
    const { system, process } = fifoProcesses();
    const handle = recording();
    const deliver = process({ options })(handle);
    const early = [deliver(numbered(3), context()), deliver(numbered(2), context())];
    await system.time.advance(999);
    expect(handle.runs).toEqual([]);
    expect(await deliver(numbered(1), context())).toEqual(ack('processed'));
    expect(await Promise.all(early)).toEqual([ack('processed'), ack('processed')]);
    expect(handle.runs).toEqual([1, 2, 3]);
  });

  test('an early delivery is given back when its time is over', async () => {
    const { system, process } = fifoProcesses();
    const early = process({ options })(recording())(numbered(2), context());
    const settledAtMs = early.then(() => system.clock.monotonicMs());
    const beganAtMs = system.clock.monotonicMs();
    await system.time.advance(5_000);
    expect(await early).toEqual(nack('early', 100));
    expect((await settledAtMs) - beganAtMs).toBe(1_000);
  });
});
