import { describe, expect, onTestFinished, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import type { FifoParts } from '../../src/shared/fifo/fifo.ts';
import type { Handler } from '../../src/shared/ports.ts';
import { checkedFifoSubscription } from '../../src/shared/transports/subscription.ts';
import { pause } from '../../src/shared/waiting.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { fifoTopics } from '../support/fifo-topics.ts';
import { listenTo } from '../support/received.ts';

const time = manualTime();
const databases = await firestoreDatabases(time);
const setUp = fifoTopics(databases, time);

/** A subscription whose messages Pub/Sub takes away at their fifth delivery that is not acked. */
async function withDeadLetters() {
  const world = await setUp();
  const { pubsub, topic } = world;
  const [dead] = await pubsub.createTopic(`${topic}-dead`);
  const letters = await listenTo(pubsub, `${topic}-dead`);
  onTestFinished(() => letters.close());
  const deadLetterPolicy = { deadLetterTopic: dead.name, maxDeliveryAttempts: 5 };
  const subscription = await world.subscribe({ deadLetterPolicy });
  return {
    ...world,
    subscription,

    taken: () => letters.messages.map(({ attributes }) => Number(attributes['ptk-seq'])),
  };
}

/** The handler of number 1 takes 20 s; 2 to 4 come at once. Resolves after them. */
async function withSlowHead(parts: Pick<FifoParts, 'early' | 'options'>) {
  const world = await withDeadLetters();
  const { sequencer, draft, subscription, until, runs } = world;
  const handle: Handler = async ({ attributes }) => {
    if (attributes['ptk-seq'] === '1') await pause(time, 20_000);
  };
  world.consumer({ subscription, handle, ...parts });
  const { publish } = sequencer();
  await publish(draft('k1'));
  await until(() => expect(runs).toHaveLength(1));
  await Promise.all(['k2', 'k3', 'k4'].map((key) => publish(draft(key))));
  return world;
}

describe('53: a dead-letter policy of 5 attempts, and number 1 takes 20 s', () => {
  test('2, 3, 4 are parked at once: after it they run in order, and none is a dead letter', async () => {
    const { seqs, parked, until, unacked, untilAcked, taken } = await withSlowHead({});
    await until(async () => expect((await parked()).toSorted()).toEqual([2, 3, 4]));
    await until(() => expect(unacked()).toHaveLength(1));
    for (let second = 0; second < 20; second++) {
      expect(seqs()).toEqual([1]);
      await time.advance(1_000);
    }
    await until(() => expect(seqs()).toEqual([1, 2, 3, 4]));
    await untilAcked();
    expect([await parked(), taken()]).toEqual([[], []]);
  });

  test('2, 3, 4 are held: each waits in its first delivery, and none is a dead letter', async () => {
    const { runs, parked, until, unacked, untilAcked, taken } = await withSlowHead({ options: { holdMs: 30_000 } });
    await until(() => expect(unacked().map(({ deliveryAttempts }) => deliveryAttempts)).toEqual([1, 1, 1, 1]));
    for (let second = 0; second < 20; second++) {
      expect(runs).toHaveLength(1);
      await until(() => {});
      await time.advance(1_000);
    }
    await until(() => expect(runs.map(({ seq, attempt }) => [seq, attempt])).toEqual([1, 2, 3, 4].map((seq) => [seq, 1])));
    await untilAcked();
    expect([await parked(), taken()]).toEqual([[], []]);
  });

  test('where they are given back Pub/Sub takes them away, as the start says that would be', async () => {
    const { pubsub, subscription, seqs, until, taken } = await withSlowHead({ early: 'nack' });
    await until(() => expect(taken().toSorted()).toEqual([2, 3, 4]));
    expect(seqs()).toEqual([1]);
    const check = checkedFifoSubscription(pubsub.subscription(subscription), { early: 'nack', leaseMs: 60_000, log: silentLog });
    await expect(check).rejects.toThrow('a dead-letter policy after 5 attempts would take early messages that are given back');
  });
});

describe('53: the head fails as often as maxAttempts allows', () => {
  /** Number 1 of stream `s` fails three times, 2 waits behind it, and another stream has two numbers. */
  async function withPoison(onPoison: 'block' | 'deadLetter') {
    const world = await withDeadLetters();
    const { sequencer, draft, subscription } = world;
    const handle: Handler = async ({ data }) => {
      if (Buffer.from(data).toString() === 'poison') throw new Error('no');
    };
    const { sweep } = world.consumer({ subscription, handle, onPoison, options: { maxAttempts: 3 } });
    const { publish } = sequencer();
    for (const key of ['poison', 'k2']) await publish(draft(key));
    for (const key of ['t1', 't2']) await publish(draft(key, { stream: 't' }));
    await world.until(() => expect(world.seqs('t')).toEqual([1, 2]));
    return { ...world, sweep };
  }

  test('its stream stands still: both are kept, it is reported, another stream goes on, and skip lets 2 go', async () => {
    const { seqs, parked, until, untilAcked, taken, cursor, meter, logged, commands, sweep, deadLetters } = await withPoison('block');
    await until(async () => expect((await parked()).toSorted()).toEqual([1, 2]));
    await untilAcked();
    expect(await cursor()).toMatchObject({ last: 0, runId: '', blocked: { seq: 1, reason: 'attempts' } });
    expect([seqs(), taken(), meter.counts.get('ptk.fifo.blocked attempts')]).toEqual([[1, 1, 1], [], 1]);
    expect(logged).toContainEqual({
      level: 'error',
      text: 'stream blocked',
      fields: expect.objectContaining({ stream: 's', seq: 1, attempts: 3 }),
    });
    expect(await commands(sweep).skip('s', 1)).toMatchObject({ kind: 'done', status: { state: 'idle', last: 2, parked: 0 } });
    expect([seqs(), taken()]).toEqual([[1, 1, 1, 2], []]);
    expect(deadLetters.kept).toMatchObject([{ reason: 'skipped' }]);
  });

  test('it is a dead letter where that was chosen, and 2 runs after it', async () => {
    const { seqs, parked, until, untilAcked, taken, deadLetters } = await withPoison('deadLetter');
    await until(() => expect(seqs()).toEqual([1, 1, 1, 2]));
    await untilAcked();
    expect(deadLetters.kept).toMatchObject([{ reason: 'attempts', detail: '3 runs of number 1 failed' }]);
    expect([await parked(), taken()]).toEqual([[], []]);
  });
});
