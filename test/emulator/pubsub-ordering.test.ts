import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { type ManualTime, manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { type RawPubsub, type RawReceived, rawPubsub, textOf, textsOf } from './pubsub-raw.ts';
import { embeddedPubsub, withPubsub } from './pubsub-targets.ts';

/** Deadlines and back-off on manual time, so on the embedded emulator alone. */
const embedded = await embeddedPubsub<ManualTime>(manualTime());
const { target, time } = embedded;
let raw: RawPubsub;
let project = 0;

beforeEach(() => {
  raw = rawPubsub(target, `ordering-${project++}`);
  return () => raw.close();
});
afterAll(embedded.stop);

async function worker(settings: object = {}, ...texts: string[]): Promise<{ topic: string; subscription: string }> {
  const topic = await raw.createTopic('orders');
  const subscription = await raw.createSubscription('worker', topic, settings);
  if (texts.length > 0) await raw.publish(topic, texts);
  return { topic, subscription };
}
const nack = (subscription: string, received: readonly RawReceived[]) => raw.modifyDeadline(subscription, received, 0);

describe('Pub/Sub ordering', () => {
  const ordered = { enableMessageOrdering: true };

  statement(target, 44, 'the messages of a key may come in one answer', async () => {
    const { topic, subscription } = await worker(ordered);
    await raw.publish(topic, ['1', '2', '3'], 'k');
    expect(textsOf(await raw.pull(subscription))).toEqual(['1', '2', '3']);
    await raw.publish(topic, ['4'], 'k');
    expect(await raw.pull(subscription)).toEqual([]);
  });

  statement(target, 45, 'a nack of the second of five brings it and all after it again, in order, one that was acked too', async () => {
    const { topic, subscription } = await worker(ordered);
    await raw.publish(topic, ['1', '2', '3', '4', '5'], 'k');
    const received = await raw.pull(subscription);
    const only = (text: string) => received.filter((one) => textOf(one) === text);
    await raw.acknowledge(subscription, [...only('1'), ...only('3')]);
    await nack(subscription, only('2'));
    const again = await raw.pull(subscription);
    expect(textsOf(again)).toEqual(['2', '3', '4', '5']);
    await raw.acknowledge(subscription, again);
    expect(embedded.backlog(subscription)).toBe(0);
  });

  statement(target, 46, 'other keys and messages without a key flow while one key waits', async () => {
    const { topic, subscription } = await worker({
      ...ordered,
      retryPolicy: { minimumBackoff: { seconds: 5 }, maximumBackoff: { seconds: 5 } },
    });
    await raw.publish(topic, ['a1'], 'a');
    await nack(subscription, await raw.pull(subscription));
    await raw.publish(topic, ['a2'], 'a');
    await raw.publish(topic, ['b1'], 'b');
    await raw.publish(topic, ['free']);
    expect(textsOf(await raw.pull(subscription)).sort()).toEqual(['b1', 'free']);
    await time.advance(5_000);
    expect(textsOf(await raw.pull(subscription))).toEqual(['a1', 'a2']);
  });

  statement(target, 47, 'a dead letter at the head of a key lets the rest go on', async () => {
    const deadLetterPolicy = { deadLetterTopic: await raw.createTopic('dead'), maxDeliveryAttempts: 5 };
    const { topic, subscription } = await worker({ ...ordered, deadLetterPolicy });
    await raw.publish(topic, ['1'], 'k');
    for (let delivery = 1; delivery <= 5; delivery++) await nack(subscription, await raw.pull(subscription));
    await raw.publish(topic, ['2'], 'k');
    expect(textsOf(await raw.pull(subscription))).toEqual(['2']);
  });

  statement(target, 43, 'a thousand messages of 20 keys come in order of each key through five streams', async () => {
    await withPubsub(target, async (pubsub) => {
      const [topic] = await pubsub.createTopic('orders');
      const [subscription] = await topic.createSubscription('worker', { enableMessageOrdering: true });
      const seen = new Map<string, number[]>();
      let count = 0;
      const all = new Promise<void>((resolve) => {
        subscription.on('message', (message) => {
          seen.set(message.orderingKey ?? '', [...(seen.get(message.orderingKey ?? '') ?? []), Number(message.data.toString())]);
          message.ack();
          if (++count === 1_000) resolve();
        });
      });
      const keyed = pubsub.topic('orders', { messageOrdering: true });
      await Promise.all(
        Array.from({ length: 1_000 }, (_, index) =>
          keyed.publishMessage({ data: Buffer.from(String(Math.floor(index / 20))), orderingKey: `k${index % 20}` }),
        ),
      );
      await all;
      const inOrder = Array.from({ length: 50 }, (_, index) => index);
      expect([...seen.values()]).toEqual(Array.from({ length: 20 }, () => inOrder));
      await subscription.close();
    })();
  });
});

describe('Pub/Sub faults', () => {
  test('a duplicate is the same message under an ack id of its own, and each needs its ack', async () => {
    const { topic, subscription } = await worker();
    const remove = embedded.faults.add({ kind: 'duplicate', times: 1 });
    await raw.publish(topic, ['a']);
    remove();
    const received = await raw.pull(subscription);
    expect(new Set(received.map(({ message }) => message.messageId)).size).toBe(1);
    expect(new Set(received.map(({ ackId }) => ackId)).size).toBe(2);
    await raw.acknowledge(subscription, received.slice(0, 1));
    expect(embedded.backlog(subscription)).toBe(1);
  });

  test('a message that is held back is overtaken, and comes within its time', async () => {
    const { topic, subscription } = await worker();
    const remove = embedded.faults.add({ kind: 'hold-back', holdMs: 1_000, times: 1 });
    await raw.publish(topic, ['held', 'next']);
    remove();
    expect(textsOf(await raw.pull(subscription))).toEqual(['next']);
    await time.advance(1_000);
    expect(textsOf(await raw.pull(subscription))).toEqual(['held']);
  });
});
