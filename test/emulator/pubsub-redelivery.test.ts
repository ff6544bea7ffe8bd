import { afterAll, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import type { RawPubsub, RawReceived } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, pubsubTargets, withPubsub, withRawPubsub } from './pubsub-targets.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);
const manual = await embeddedPubsub(manualTime());
afterAll(manual.stop);
const { time } = manual;

type Held = [subscription: string, received: readonly RawReceived[]];
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });

/** A topic, a subscription, and one message in it. */
async function oneMessage(raw: RawPubsub, settings: object = {}): Promise<string> {
  const topic = await raw.createTopic('orders');
  const subscription = await raw.createSubscription('worker', topic, settings);
  await raw.publish(topic, ['a']);
  return subscription;
}

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub redelivery: ${target.name}`, () => {
    statement(
      target,
      33,
      'a nack right after the delivery brings the message back well before its ack deadline',
      withPubsub(target, async (pubsub) => {
        const [topic] = await pubsub.createTopic('orders');
        const [subscription] = await topic.createSubscription('worker');
        await topic.publishMessage({ data: Buffer.from('a') });
        const deliveredAtMs: number[] = [];
        await new Promise<void>((resolve) =>
          subscription.on('message', (message) => {
            if (deliveredAtMs.push(performance.now()) < 3) return message.nack();
            message.ack();
            resolve();
          }),
        );
        if (target === embedded.target) await expect.poll(() => embedded.backlog(subscription.name)).toBe(0);
        // The client itself collects nacks for 100 ms.
        for (const [index, atMs] of deliveredAtMs.slice(1).entries()) expect(atMs - (deliveredAtMs[index] ?? 0)).toBeLessThan(1_000);
      }),
    );

    statement(
      target,
      33,
      'a nack that an extension follows, as the client sends them, brings the message back within 50 ms',
      withRawPubsub(target, async (raw) => {
        const subscription = await oneMessage(raw);
        const stream = raw.stream(subscription);
        let fastestMs = Number.POSITIVE_INFINITY;
        // Google's emulator looks for what is due every 50 ms. A busy machine has its moments; the fastest of twenty tells.
        const boundMs = target.name === 'google' ? 100 : 50;
        for (let count = 1; count <= 20 && fastestMs >= boundMs; count++) {
          const current = (await stream.count(count)).slice(-1);
          const nackedAtMs = performance.now();
          await Promise.all([raw.modifyDeadline(subscription, current, 0), raw.modifyDeadline(subscription, current, 10)]);
          await stream.count(count + 1);
          fastestMs = Math.min(fastestMs, performance.now() - nackedAtMs);
        }
        stream.cancel();
        expect(fastestMs).toBeLessThan(boundMs);
        expect(new Set(stream.received.map(({ ackId }) => ackId)).size).toBe(stream.received.length);
      }),
    );

    statement(
      target,
      34,
      'a stale ack id is answered with OK and acks nothing',
      withRawPubsub(target, async (raw) => {
        const subscription = await oneMessage(raw);
        const stale = await raw.pull(subscription);
        await raw.modifyDeadline(subscription, stale, 0);
        const current = await raw.pull(subscription);
        expect(await codeOf(raw.acknowledge(subscription, stale))).toBe('OK');
        expect(await codeOf(raw.modifyDeadline(subscription, stale, 0))).toBe('OK');
        expect(await raw.pull(subscription)).toEqual([]);
        await raw.modifyDeadline(subscription, current, 0);
        expect(await raw.pull(subscription)).toHaveLength(1);
      }),
    );

    statement(
      target,
      35,
      'a second ack is answered with OK',
      withRawPubsub(target, async (raw) => {
        const subscription = await oneMessage(raw);
        const received = await raw.pull(subscription);
        expect(await codeOf(raw.acknowledge(subscription, received))).toBe('OK');
        expect(await codeOf(raw.acknowledge(subscription, received))).toBe('OK');
        await raw.modifyDeadline(subscription, received, 0);
        expect(await raw.pull(subscription)).toEqual([]);
      }),
    );

    statement(
      target,
      38,
      'deliveries are counted from 1 under a dead-letter policy, and not without one',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const counting = await raw.createSubscription('counting', topic, { deadLetterPolicy: { deadLetterTopic: topic } });
        const plain = await raw.createSubscription('plain', topic);
        await raw.publish(topic, ['a']);
        for (const attempt of [1, 2, 3]) {
          for (const [subscription, expected] of [[counting, attempt] as const, [plain, 0] as const]) {
            const received = await raw.pull(subscription);
            expect(received[0]?.deliveryAttempt).toBe(expected);
            await raw.modifyDeadline(subscription, received, 0);
          }
        }
      }),
    );

    statement(
      target,
      39,
      'after five deliveries a message goes to the dead-letter topic with all it had and four attributes more',
      withRawPubsub(target, async (raw) => {
        const dead = await raw.createTopic('dead');
        const letters = await raw.createSubscription('letters', dead);
        const topic = await raw.createTopic('orders');
        const deadLetterPolicy = { deadLetterTopic: dead, maxDeliveryAttempts: 5 };
        const subscription = await raw.createSubscription('worker', topic, { deadLetterPolicy });
        const message = { data: Buffer.from('a'), attributes: { kind: 'order' }, orderingKey: 'k' };
        const { messageIds = [] } = await raw.call('Publish', { topic, messages: [message] });
        for (const attempt of [1, 2, 3, 4, 5]) {
          expect(await raw.pull(letters)).toEqual([]);
          const received = await raw.pull(subscription);
          expect(received[0]?.deliveryAttempt).toBe(attempt);
          await raw.modifyDeadline(subscription, received, 0);
        }
        expect(await raw.pull(subscription)).toEqual([]);
        const [letter] = await raw.pull(letters);
        expect(letter?.message).toMatchObject(message);
        expect(letter?.message.messageId).not.toBe(messageIds[0]);
        expect(letter?.message.attributes).toEqual({
          kind: 'order',
          CloudPubSubDeadLetterSourceDeliveryCount: '5',
          CloudPubSubDeadLetterSourceSubscription: 'worker',
          CloudPubSubDeadLetterSourceSubscriptionProject: raw.project.slice('projects/'.length),
          CloudPubSubDeadLetterSourceTopicPublishTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        });
      }),
    );
  });
}

describe('Pub/Sub redelivery: manual time', () => {
  const { target } = manual;

  statement(
    target,
    32,
    'an unacked message comes back at its deadline and not before, and an extension counts as no attempt',
    withRawPubsub(target, async (raw) => {
      const deadLetterTopic = await raw.createTopic('dead');
      const subscription = await oneMessage(raw, { ackDeadlineSeconds: 20, deadLetterPolicy: { deadLetterTopic } });
      const received = await raw.pull(subscription);
      await time.advance(19_999);
      expect(await raw.pull(subscription)).toEqual([]);
      await raw.modifyDeadline(subscription, received, 30);
      await time.advance(29_999);
      expect(await raw.pull(subscription)).toEqual([]);
      expect(received[0]?.deliveryAttempt).toBe(1);
      await time.advance(1);
      expect((await raw.pull(subscription))[0]?.deliveryAttempt).toBe(2);
    }),
  );

  statement(
    target,
    34,
    'a stale ack id extends nothing, after a nack and after an expiry',
    withRawPubsub(target, async (raw) => {
      const subscription = await oneMessage(raw);
      const nacked = await raw.pull(subscription);
      await raw.modifyDeadline(subscription, nacked, 0);
      const expired = await raw.pull(subscription);
      await time.advance(10_000);
      const current = await raw.pull(subscription);
      for (const stale of [nacked, expired]) await raw.modifyDeadline(subscription, stale, 600);
      await time.advance(10_000);
      expect(await raw.pull(subscription)).toHaveLength(current.length);
    }),
  );

  for (const { number, cause, fail } of [
    { number: 36, cause: 'a nack', fail: (raw: RawPubsub, ...held: Held) => raw.modifyDeadline(...held, 0) },
    { number: 37, cause: 'an expiry', fail: () => time.advance(10_000) },
  ]) {
    statement(
      target,
      number,
      `under a retry policy of 1 s to 4 s, ${cause} holds the message back for 1, 2, 4, 4 s`,
      withRawPubsub(target, async (raw) => {
        const subscription = await oneMessage(raw, { retryPolicy: { minimumBackoff: seconds(1), maximumBackoff: seconds(4) } });
        for (const gapMs of [1_000, 2_000, 4_000, 4_000]) {
          const received = await raw.pull(subscription);
          expect(received).toHaveLength(1);
          await fail(raw, subscription, received);
          await time.advance(gapMs - 1);
          expect(await raw.pull(subscription)).toEqual([]);
          await time.advance(1);
        }
        expect(await raw.pull(subscription)).toHaveLength(1);
      }),
    );
  }

  statement(
    target,
    36,
    'without a retry policy a nacked message is there at once',
    withRawPubsub(target, async (raw) => {
      const subscription = await oneMessage(raw);
      await raw.modifyDeadline(subscription, await raw.pull(subscription), 0);
      expect(await raw.pull(subscription)).toHaveLength(1);
    }),
  );

  test(
    'a message whose dead-letter topic is gone stays',
    withRawPubsub(target, async (raw) => {
      const deadLetterTopic = await raw.createTopic('dead');
      const subscription = await oneMessage(raw, { deadLetterPolicy: { deadLetterTopic, maxDeliveryAttempts: 5 } });
      await raw.call('DeleteTopic', { topic: deadLetterTopic });
      for (const attempt of [1, 2, 3, 4, 5, 6, 7]) {
        const received = await raw.pull(subscription);
        expect(received[0]?.deliveryAttempt).toBe(attempt);
        await raw.modifyDeadline(subscription, received, 0);
      }
    }),
  );
});
