import { afterAll, describe, expect, test, vi } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { type RawPubsub, type RawReceived, textOf, textsOf } from './pubsub-raw.ts';
import { embeddedPubsub, pubsubTargets, withPubsub, withRawPubsub } from './pubsub-targets.ts';

/** 20,000 messages take their time on a busy machine. */
vi.setConfig({ testTimeout: 60_000 });

const embedded = await embeddedPubsub();
afterAll(embedded.stop);
const manual = await embeddedPubsub(manualTime());
afterAll(manual.stop);
const strict = await embeddedPubsub(manualTime(), { ordering: 'strict' });
afterAll(strict.stop);

const ordered = { enableMessageOrdering: true };
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });

async function orderedSubscription(raw: RawPubsub, settings: object = {}): Promise<{ topic: string; subscription: string }> {
  const topic = await raw.createTopic('orders');
  return { topic, subscription: await raw.createSubscription('worker', topic, { ...ordered, ...settings }) };
}

const only = (received: readonly RawReceived[], ...texts: string[]) => received.filter((one) => texts.includes(textOf(one)));

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub ordering: ${target.name}`, () => {
    statement(
      target,
      43,
      '1,000 messages of each of 20 keys come in order within their key, over five streams',
      withPubsub(target, async (pubsub) => {
        const [topic] = await pubsub.createTopic('orders');
        const [subscription] = await topic.createSubscription('worker', ordered);
        const publisher = pubsub.topic('orders', { messageOrdering: true });
        const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`);
        const numbers = Array.from({ length: 1_000 }, (_, index) => String(index));
        const received = new Map<string, string[]>(keys.map((key) => [key, []]));
        let left = keys.length * numbers.length;
        const all = new Promise<void>((resolve) =>
          subscription.on('message', (message) => {
            received.get(message.orderingKey ?? '')?.push(message.data.toString());
            message.ack();
            if (--left === 0) resolve();
          }),
        );
        const published = numbers.flatMap((text) =>
          keys.map((orderingKey) => publisher.publishMessage({ data: Buffer.from(text), orderingKey })),
        );
        await Promise.all([...published, all]);
        for (const [key, texts] of received) expect(texts, key).toEqual(numbers);
      }),
    );

    statement(
      target,
      44,
      'messages of one key come several at once, and no more until all of them are acked',
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await orderedSubscription(raw);
        await raw.publish(topic, ['1', '2', '3'], 'k');
        const first = await raw.pull(subscription);
        expect(textsOf(first)).toEqual(['1', '2', '3']);
        await raw.publish(topic, ['4'], 'k');
        await raw.acknowledge(subscription, only(first, '1', '2'));
        expect(await raw.pull(subscription)).toEqual([]);
        await raw.acknowledge(subscription, only(first, '3'));
        expect(textsOf(await raw.pull(subscription))).toEqual(['4']);
      }),
    );

    statement(
      target,
      45,
      'a nacked message takes all later ones of its key with it, acked or not',
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await orderedSubscription(raw);
        await raw.publish(topic, ['1', '2', '3', '4', '5'], 'k');
        const received = await raw.pull(subscription);
        await raw.acknowledge(subscription, only(received, '1', '3'));
        await raw.modifyDeadline(subscription, only(received, '2'), 0);
        expect(textsOf(await raw.pull(subscription))).toEqual(['2', '3', '4', '5']);
      }),
      { differs: 'brings the nacked message alone, once the rest of its key is acked' },
    );

    statement(
      target,
      47,
      'a dead-lettered message lets the rest of its key go on',
      withRawPubsub(target, async (raw) => {
        const deadLetterTopic = await raw.createTopic('dead');
        const { topic, subscription } = await orderedSubscription(raw, { deadLetterPolicy: { deadLetterTopic, maxDeliveryAttempts: 5 } });
        await raw.publish(topic, ['poison', '1', '2'], 'k');
        for (let attempt = 1; attempt <= 5; attempt++) {
          const received = await raw.pull(subscription, 1);
          expect(textsOf(received)).toEqual(['poison']);
          await raw.modifyDeadline(subscription, received, 0);
        }
        expect(textsOf(await raw.pull(subscription))).toEqual(['1', '2']);
      }),
      { differs: 'hands out the later messages of a key before a nacked one' },
    );
  });
}

describe('Pub/Sub ordering: manual time', () => {
  const { target, time } = manual;

  statement(
    target,
    46,
    'other keys and messages without a key flow while one key waits for its retry',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await orderedSubscription(raw, {
        retryPolicy: { minimumBackoff: seconds(1), maximumBackoff: seconds(4) },
      });
      await raw.publish(topic, ['k1', 'k2'], 'k');
      await raw.modifyDeadline(subscription, await raw.pull(subscription, 1), 0);
      await raw.publish(topic, ['l1'], 'l');
      await raw.publish(topic, ['free']);
      expect(textsOf(await raw.pull(subscription)).sort()).toEqual(['free', 'l1']);
      await time.advance(999);
      expect(await raw.pull(subscription)).toEqual([]);
      await time.advance(1);
      expect(textsOf(await raw.pull(subscription))).toEqual(['k1', 'k2']);
    }),
  );

  test(
    'a key waits for the longest of its retries',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await orderedSubscription(raw, {
        retryPolicy: { minimumBackoff: seconds(2), maximumBackoff: seconds(2) },
      });
      await raw.publish(topic, ['1', '2'], 'k');
      const received = await raw.pull(subscription);
      await raw.modifyDeadline(subscription, only(received, '2'), 0);
      await time.advance(1_000);
      await raw.modifyDeadline(subscription, only(received, '1'), 0);
      await time.advance(1_999);
      expect(await raw.pull(subscription)).toEqual([]);
      await time.advance(1);
      expect(textsOf(await raw.pull(subscription))).toEqual(['1', '2']);
    }),
  );

  test(
    'the messages of a key come back in order when they expire together',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await orderedSubscription(raw);
      await raw.publish(topic, ['1', '2', '3'], 'k');
      await raw.pull(subscription);
      await time.advance(10_000);
      const again = await raw.pull(subscription);
      expect(textsOf(again)).toEqual(['1', '2', '3']);
      await raw.acknowledge(subscription, again);
      expect(manual.backlog(subscription)).toBe(0);
    }),
  );

  test(
    'messages of a key that expire together make room for no more than they took',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await orderedSubscription(raw);
      await raw.publish(topic, ['1', '2', '3'], 'k');
      const stream = raw.stream(subscription, { maxOutstandingMessages: '3' });
      await stream.count(3);
      await raw.publish(topic, ['4', '5', '6']);
      await time.advance(10_000);
      await stream.count(6);
      await raw.call('GetSubscription', { subscription });
      expect(textsOf(stream.received)).toEqual(['1', '2', '3', '1', '2', '3']);
      stream.cancel();
    }),
  );

  test(
    'a dead letter does not come again with the messages before it',
    withRawPubsub(target, async (raw) => {
      const deadLetterTopic = await raw.createTopic('dead');
      const { topic, subscription } = await orderedSubscription(raw, { deadLetterPolicy: { deadLetterTopic, maxDeliveryAttempts: 5 } });
      await raw.publish(topic, ['1', '2', 'poison'], 'k');
      for (let attempt = 1; attempt <= 5; attempt++) {
        const received = await raw.pull(subscription);
        expect(textsOf(received)).toEqual(['1', '2', 'poison']);
        await raw.modifyDeadline(subscription, only(received, 'poison'), 0);
        // A nack of the first brings all of them again, and counts for itself alone.
        await raw.modifyDeadline(subscription, only(received, attempt < 5 ? '1' : '2'), 0);
        if (attempt === 5) await raw.acknowledge(subscription, only(received, '1'));
      }
      expect(textsOf(await raw.pull(subscription))).toEqual(['2']);
    }),
  );

  test(
    'a subscription without ordering takes no notice of keys',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await orderedSubscription(raw, { enableMessageOrdering: false });
      await raw.publish(topic, ['1'], 'k');
      await raw.pull(subscription);
      await raw.publish(topic, ['2'], 'k');
      expect(textsOf(await raw.pull(subscription))).toEqual(['2']);
    }),
  );
});

describe('Pub/Sub ordering: strict', () => {
  statement(
    strict.target,
    44,
    'in strict mode each message of a key comes after the ack of the one before, by pull and by stream',
    withRawPubsub(strict.target, async (raw) => {
      const { topic, subscription } = await orderedSubscription(raw);
      const texts = ['1', '2', '3', '4'];
      await raw.publish(topic, texts, 'k');
      for (const text of texts.slice(0, 2)) {
        const received = await raw.pull(subscription);
        expect(textsOf(received)).toEqual([text]);
        expect(await raw.pull(subscription)).toEqual([]);
        await raw.acknowledge(subscription, received);
      }
      const stream = raw.stream(subscription);
      const third = await stream.count(1);
      expect(await raw.pull(subscription)).toEqual([]);
      expect(textsOf(third)).toEqual(['3']);
      await raw.acknowledge(subscription, third);
      expect(textsOf(await stream.count(2))).toEqual(['3', '4']);
      stream.cancel();
    }),
  );
});
