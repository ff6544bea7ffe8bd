import { describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Publisher } from '../../src/shared/ports.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { fifoTopics, losing } from '../support/fifo-topics.ts';
import { gate } from '../support/manual-system.ts';
import { upTo } from '../support/sequencing.ts';

const time = manualTime();
const databases = await firestoreDatabases(time);
const setUp = fifoTopics(databases, time);
type World = Awaited<ReturnType<typeof setUp>>;

/** Publishes the next numbers of stream `s`, from a process of its own. */
const publishAll = ({ sequencer, draft }: World, numbers: readonly number[], publisher?: Publisher) => {
  const { publish } = sequencer(publisher && { publisher });
  return Promise.all(numbers.map((n) => publish(draft(`k${n}`))));
};
const gapTimeoutMs = 300_000;
const reported = (seq: number, missing: number) => ({
  level: 'error',
  text: 'a stream waits for a number that has not come',
  fields: { stream: 's', epoch: expect.any(Number), seq, missing, waitingMs: gapTimeoutMs },
});

describe('50: a subscription that is created after number 7', () => {
  async function inMidStream() {
    const world = await setUp();
    await publishAll(world, upTo(7));
    return { ...world, subscription: await world.subscribe() };
  }

  test.each(['firstSeen', 8] as const)('starts with 8 where startAt is %s', async (startAt) => {
    const world = await inMidStream();
    world.consumer({ subscription: world.subscription, startAt });
    await publishAll(world, [8]);
    await world.until(() => expect(world.seqs()).toEqual([8]));
    await publishAll(world, [9, 10]);
    await world.until(async () => expect(await world.cursor()).toMatchObject({ start: 8, last: 10, runId: '' }));
    expect([world.seqs(), world.deadLetters.kept, await world.parked()]).toEqual([[8, 9, 10], [], []]);
  });

  test('waits for 1 by default, which is reported after the gap time-out, and goes on with 8 once its position is set', async () => {
    const world = await inMidStream();
    const { seqs, parked, until, meter, logged, commands } = world;
    const { sweep } = world.consumer({ subscription: world.subscription });
    await publishAll(world, [8]);
    await until(async () => expect(await parked()).toEqual([8]));
    await world.untilAcked();
    await time.advance(gapTimeoutMs);
    expect(await sweep()).toMatchObject({ run: 0, gaps: 1 });
    expect([seqs(), meter.counts.get('ptk.fifo.gaps'), logged]).toEqual([[], 1, [reported(1, 7)]]);
    expect(await commands(sweep).reset('s', { to: 7 })).toMatchObject({ kind: 'done', status: { last: 8, parked: 0 } });
    expect(seqs()).toEqual([8]);
  });
});

describe('50: number 4 is lost', () => {
  test('5 and 6 wait, acked; after the gap time-out that is reported, and skip(4) lets them go in order', async () => {
    const world = await setUp();
    const { seqs, parked, until, meter, logged, commands, deadLetters } = world;
    const { sweep } = world.consumer({ subscription: await world.subscribe() });
    await publishAll(world, upTo(6), losing(world.publisher, 4));
    await until(async () =>
      expect([seqs(), await parked()]).toEqual([
        [1, 2, 3],
        [5, 6],
      ]),
    );
    await world.untilAcked();
    await time.advance(gapTimeoutMs - 1);
    expect(await sweep()).toEqual({ run: 0, removed: 0, gaps: 1, blocked: 0 });
    expect([meter.counts.get('ptk.fifo.gaps'), logged]).toEqual([undefined, []]);
    await time.advance(1);
    expect(await sweep('s')).toEqual({ run: 0, removed: 0, gaps: 1, blocked: 0 });
    expect([meter.counts.get('ptk.fifo.gaps'), logged]).toEqual([1, [reported(4, 1)]]);
    expect(await commands(sweep).skip('s', 4)).toMatchObject({ kind: 'done', status: { state: 'idle', last: 6, skipped: 1, parked: 0 } });
    expect([seqs(), deadLetters.kept]).toEqual([[1, 2, 3, 5, 6], []]);
  });
});

describe('51: a number that is committed and not published', () => {
  /** Numbers 1 to 4 are done. */
  async function afterFour() {
    const world = await setUp();
    world.consumer({ subscription: await world.subscribe() });
    await publishAll(world, upTo(4));
    await world.until(() => expect(world.seqs()).toEqual([1, 2, 3, 4]));
    return world;
  }
  const handoffMs = 30_000;

  test('is published by the relay where every try of its publisher failed; 6 waits for it, and a retry gets no second number', async () => {
    const world = await afterFour();
    const { seqs, parked, until, relay, sequencer, draft } = world;
    const down: Publisher = { publish: () => Promise.reject(new Error('the service is down')) };
    const [five] = await publishAll(world, [5], down);
    expect(five).toEqual({ key: 'k5', sequence: 5, epoch: expect.any(Number) });
    await publishAll(world, [6]);
    await until(async () => expect([seqs(), await parked()]).toEqual([[1, 2, 3, 4], [6]]));
    await world.untilAcked();
    expect(await sequencer().publish(draft('k5'))).toMatchObject({ sequence: 5 });
    await time.advance(handoffMs);
    expect(await relay()()).toMatchObject({ published: 1, failed: 0 });
    await until(() => expect(seqs()).toEqual(upTo(6)));
    expect(await parked()).toEqual([]);
  });

  test('is published by the relay where its publisher was killed between commit and publish', async () => {
    const world = await afterFour();
    const { seqs, parked, until, relay, entries } = world;
    const killed = gate();
    const dying: Publisher = {
      publish() {
        killed.open();
        return new Promise(() => {});
      },
    };
    void publishAll(world, [5], dying);
    await killed.opened;
    await publishAll(world, [6]);
    await until(async () => expect([seqs(), await parked()]).toEqual([[1, 2, 3, 4], [6]]));
    await world.untilAcked();
    await time.advance(handoffMs);
    expect(await relay()()).toMatchObject({ published: 1, failed: 0 });
    await until(() => expect(seqs()).toEqual(upTo(6)));
    expect((await entries()).filter(({ state }) => state !== 'published')).toEqual([]);
  });

  test('is passed over where its topic refuses it for good: a tombstone takes its place, and 6 runs', async () => {
    const world = await afterFour();
    const { seqs, parked, until, relay, publisher, cursor, entries } = world;
    const refusing: Publisher = {
      publish(topic, messages) {
        if (messages.some(({ data }) => Buffer.from(data).toString() === 'k5')) throw new ToolkitError('REFUSED', 'the message is no good');
        return publisher.publish(topic, messages);
      },
    };
    await publishAll(world, [5], refusing);
    await publishAll(world, [6]);
    await until(async () => expect(await parked()).toEqual([6]));
    await world.untilAcked();
    await time.advance(handoffMs);
    expect(await relay({ publisher: refusing })()).toMatchObject({ published: 0, dead: 1 });
    await until(() => expect(seqs()).toEqual([1, 2, 3, 4, 6]));
    expect(await cursor()).toMatchObject({ last: 6, skipped: [] });
    expect((await entries()).find(({ seq }) => seq === 5)).toMatchObject({ state: 'dead' });
  });
});

describe('52: after number 100', () => {
  /** Numbers 1 to 100 are done, and some time has passed since. */
  async function afterHundred() {
    const world = await setUp();
    const { sweep } = world.consumer({ subscription: await world.subscribe() });
    await publishAll(world, upTo(100));
    await world.until(async () => expect(await world.cursor()).toMatchObject({ last: 100, runId: '' }));
    await world.untilAcked();
    await time.advance(60_000);
    world.runs.length = 0;
    return { ...world, sweep };
  }

  test('the publisher’s counter is deleted: its new number 1 stops the stream and is reported, kept, and runs after a reset', async () => {
    const world = await afterHundred();
    const { db, runs, parked, until, meter, logged, commands, cursor, sweep, deadLetters } = world;
    await db.doc('ptk-streams/s').delete();
    const { publish } = world.sequencer();
    const fresh = await publish(world.draft('new'));
    expect(fresh).toMatchObject({ sequence: 1 });
    await until(async () => expect(await parked()).toEqual([1]));
    const { epoch: before } = (await cursor()) ?? {};
    expect(fresh.epoch).toBeGreaterThan(before);
    expect([runs, deadLetters.kept, meter.counts.get('ptk.fifo.blocked epoch')]).toEqual([[], [], 1]);
    const text = 'stream blocked: its publisher numbers in a newer epoch';
    expect(logged).toEqual([{ level: 'error', text, fields: { stream: 's', epoch: fresh.epoch, before, last: 100 } }]);
    expect(await commands().blocked()).toMatchObject([{ stream: 's', state: 'blocked', last: 100, blocked: { reason: 'epoch' } }]);
    expect(await commands(sweep).reset('s', {})).toMatchObject({ kind: 'done', status: { state: 'idle', epoch: fresh.epoch, last: 1 } });
    await publish(world.draft('newer'));
    await until(() =>
      expect(runs.map(({ seq, data }) => [seq, data])).toEqual([
        [1, 'new'],
        [2, 'newer'],
      ]),
    );
  });

  test('the publisher’s counter is set back by a backup: what has a number again is a dead letter with its reason', async () => {
    const { db, sequencer, draft, runs, until, deadLetters, cursor } = await afterHundred();
    await db.doc('ptk-streams/s').update({ next: 1 });
    for (const key of ['new', 'newer']) await sequencer().publish(draft(key));
    await until(() => expect(deadLetters.kept).toHaveLength(2));
    const letters = deadLetters.kept.map(({ reason, message }) => [reason, Buffer.from(message.data).toString()]);
    expect(letters.sort()).toEqual([
      ['sequenceReused', 'new'],
      ['sequenceReused', 'newer'],
    ]);
    expect([runs, await cursor()]).toMatchObject([[], { last: 100, blocked: null }]);
  });

  test('the consumer’s cursor is deleted: 101 is kept and the gap reported, and reset --to 100 goes on', async () => {
    const world = await afterHundred();
    const { db, runs, seqs, parked, until, meter, logged, commands, sweep } = world;
    await db.doc('ptk-cursors/c~s').delete();
    await publishAll(world, [101]);
    await until(async () => expect(await parked()).toEqual([101]));
    await world.untilAcked();
    await time.advance(gapTimeoutMs);
    expect(await sweep()).toMatchObject({ run: 0, gaps: 1 });
    expect([runs, meter.counts.get('ptk.fifo.gaps'), logged]).toEqual([[], 1, [reported(1, 100)]]);
    expect(await commands().status('s')).toMatchObject({ state: 'unknown', parked: 1, lowestParked: { seq: 101 } });
    expect(await commands(sweep).reset('s', { to: 100 })).toMatchObject({ kind: 'done', status: { last: 101, parked: 0 } });
    await publishAll(world, [102]);
    await until(() => expect(seqs()).toEqual([101, 102]));
  });
});
