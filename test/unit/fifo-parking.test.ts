import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { context, fifoProcesses, leaseMs, numbered, recording } from '../support/fifo-processes.ts';
import { gate } from '../support/manual-system.ts';

const parking = () => fifoProcesses('park');
const tooLarge = () => Promise.reject(new ToolkitError('MESSAGE_TOO_LARGE', 'a parked message may take 1000000 bytes'));

describe('an early message', () => {
  test('is parked and acked; whoever ends the number before it runs it, and all that follow', async () => {
    const { process, cursor, parked, meter } = parking();
    const handle = recording();
    const deliver = process()(handle);
    expect(await deliver(numbered(3), context())).toEqual(ack('parked'));
    expect(await process()(handle)(numbered(2), context())).toEqual(ack('parked'));
    expect([await cursor(), parked(), handle.runs]).toEqual([undefined, [2, 3], []]);
    expect(await deliver(numbered(1), context())).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 3, runId: '', by: 0 });
    expect([handle.runs, parked(), meter.counts.get('ptk.fifo.parked early')]).toEqual([[1, 2, 3], [], 2]);
  });

  test('that comes while another delivery holds the stream is parked and found by that one', async () => {
    const { system, process, cursor, parked } = parking();
    const hold = gate();
    const runs: number[] = [];
    const handle = async ({ attributes }: { attributes: Readonly<Record<string, string>> }) => {
      runs.push(Number(attributes['ptk-seq']));
      if (runs.length === 1) await hold.opened;
    };
    const first = process()(handle)(numbered(1), context());
    await system.time.advance(10);
    expect(await process()(handle)(numbered(2), context())).toEqual(ack('parked'));
    hold.open();
    expect([await first, runs, parked()]).toEqual([ack('processed'), [1, 2], []]);
    expect(await cursor()).toMatchObject({ last: 2, runId: '' });
  });

  test('that is too large to be parked is given back, and counted', async () => {
    const { process, meter, parked } = parking();
    const handle = recording();
    const deliver = process({ park: tooLarge })(handle);
    expect(await deliver(numbered(2), context())).toEqual(nack('early', 100));
    expect([meter.counts.get('ptk.fifo.not_parked'), parked(), handle.runs]).toEqual([1, [], []]);
  });

  test('that comes again when it is done is old, and leaves nothing in the park', async () => {
    const { process, parked } = parking();
    const handle = recording();
    const deliver = process()(handle);
    await deliver(numbered(2), context());
    await deliver(numbered(1), context());
    expect(await deliver(numbered(2), context())).toEqual(ack('old'));
    expect([handle.runs, parked()]).toEqual([[1, 2], []]);
  });
});

describe('what was parked and fails', () => {
  test('is tried again by the delivery that brought it on, which is not acked until then', async () => {
    const { process, cursor, parked } = parking();
    const failing = recording(undefined as never, new Error('down'));
    const deliver = process()(failing);
    await deliver(numbered(2), context());
    expect(await deliver(numbered(1), context())).toEqual(nack('failed'));
    expect([failing.runs, parked()]).toEqual([[1, 2], [2]]);
    expect(await cursor()).toMatchObject({ last: 1, runId: '', attempts: 1 });
    expect(await deliver(numbered(1), context())).toEqual(ack('old'));
    expect([failing.runs, parked()]).toEqual([[1, 2, 2], []]);
    expect(await cursor()).toMatchObject({ last: 2, attempts: 0 });
  });

  test('a copy of that delivery waits while the parked message runs on its behalf', async () => {
    const { system, process } = parking();
    const hold = gate();
    const handle = async ({ attributes }: { attributes: Readonly<Record<string, string>> }) => {
      if (attributes['ptk-seq'] === '2') await hold.opened;
    };
    await process()(handle)(numbered(2), context());
    const first = process()(handle)(numbered(1), context());
    await system.time.advance(10);
    expect(await process()(handle)(numbered(1), context())).toMatchObject({ kind: 'nack', reason: 'inProgress' });
    hold.open();
    expect(await first).toEqual(ack('processed'));
  });
});

describe('a number whose attempts are used up', () => {
  const failing = (times: number) => recording(...Array.from({ length: times }, () => new Error('poison')));

  test('blocks its stream: parked and acked with all that follows, while other streams go on', async () => {
    const { process, cursor, parked, meter } = parking();
    const handle = failing(3);
    const deliver = process({ options: { maxAttempts: 3 } })(handle);
    expect(await deliver(numbered(1), context())).toEqual(nack('failed'));
    expect(await deliver(numbered(1), context())).toEqual(nack('failed'));
    expect(await deliver(numbered(1), context())).toEqual(ack('parked'));
    expect(await cursor()).toMatchObject({ last: 0, runId: '', attempts: 3, blocked: { seq: 1, reason: 'attempts' } });
    expect(await deliver(numbered(2), context())).toEqual(ack('parked'));
    expect([parked(), handle.runs, meter.counts.get('ptk.fifo.blocked attempts')]).toEqual([[1, 2], [1, 1, 1], 1]);
    expect(await deliver(numbered(1, { 'ptk-stream': 't' }), context())).toEqual(ack('processed'));
  });

  test('blocks its stream where it is too large to be parked too, and stays with its topic', async () => {
    const { process, cursor, parked, meter } = parking();
    const deliver = process({ park: tooLarge, options: { maxAttempts: 1 } })(failing(1));
    expect(await deliver(numbered(1), context())).toMatchObject({ kind: 'nack', reason: 'blocked' });
    expect(await cursor()).toMatchObject({ last: 0, runId: '', blocked: { seq: 1 } });
    expect(await deliver(numbered(1), context())).toEqual(nack('blocked', 1_000));
    expect([parked(), meter.counts.get('ptk.fifo.not_parked')]).toEqual([[], 2]);
  });

  test('is a dead letter where the stream is to go on without it', async () => {
    const { process, cursor, deadLetters } = parking();
    const deliver = process({ onPoison: 'deadLetter', options: { maxAttempts: 2 } })(failing(2));
    await deliver(numbered(2), context());
    expect(await deliver(numbered(1), context())).toEqual(nack('failed'));
    expect(await deliver(numbered(1), context())).toEqual(ack('skipped'));
    expect(deadLetters.kept).toMatchObject([{ reason: 'attempts', detail: '2 runs of number 1 failed' }]);
    expect(await cursor()).toMatchObject({ last: 2, blocked: null, attempts: 0 });
  });

  test('is not begun again where its runs took their processes down', async () => {
    const { system, process, cursor } = parking();
    for (let deaths = 0; deaths < 3; deaths++) {
      void process({ dies: true, options: { maxAttempts: 2 } })(() => new Promise(() => {}))(numbered(1), context());
      await system.time.advance(leaseMs);
    }
    const handle = recording();
    expect(await process({ options: { maxAttempts: 2 } })(handle)(numbered(1), context())).toEqual(ack('parked'));
    expect([handle.runs, await cursor()]).toMatchObject([[], { blocked: { seq: 1 } }]);
  });

  test('waiting counts for nothing: neither early deliveries nor a handler that gives back', async () => {
    const { process, cursor } = parking();
    const deliver = process({ options: { maxAttempts: 1 } })(recording(nack('inProgress', 5), nack('inProgress', 5)));
    for (let times = 0; times < 5; times++) await deliver(numbered(3), context());
    expect(await deliver(numbered(1), context())).toEqual(nack('inProgress', 5));
    expect(await deliver(numbered(1), context())).toEqual(nack('inProgress', 5));
    expect(await deliver(numbered(1), context())).toEqual(ack('processed'));
    expect(await cursor()).toMatchObject({ last: 1, attempts: 0, blocked: null });
  });
});
