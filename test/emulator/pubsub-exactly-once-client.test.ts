import { AckError, type Message, type PubSub, type Subscription } from '@google-cloud/pubsub';
import { afterAll, describe, expect } from 'vitest';
import { statement, type Target } from '../support/targets.ts';
import { rawPubsub } from './pubsub-raw.ts';
import { embeddedPubsub, withPubsub } from './pubsub-targets.ts';

/** Google's emulator is not asked: it knows no exactly-once delivery. */
const faithful = await embeddedPubsub();
afterAll(faithful.stop);
const clean = await embeddedPubsub(undefined, { exactlyOnce: 'clean' });
afterAll(clean.stop);

const outcomeOf = (ack: Promise<string>) => ack.catch((error: unknown) => (error instanceof AckError ? error.errorCode : error));

/** A subscription whose messages are collected. */
async function collected(
  pubsub: PubSub,
  settings: object = {},
): Promise<{ subscription: Subscription; received: Message[]; publish(text: string): Promise<unknown> }> {
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription('worker', { enableExactlyOnceDelivery: true, ...settings });
  const received: Message[] = [];
  subscription.on('message', (message) => received.push(message));
  return { subscription, received, publish: (text) => topic.publishMessage({ data: Buffer.from(text) }) };
}

/** From elsewhere, so that the client does not know. */
async function nack(target: Target, { name }: Subscription, ackId: string | undefined): Promise<void> {
  const raw = rawPubsub(target, 'elsewhere');
  await raw.call('ModifyAckDeadline', { subscription: name, ackIds: [ackId], ackDeadlineSeconds: 0 });
  raw.close();
}

describe('Pub/Sub exactly-once delivery: the client', () => {
  const { target, faults, backlog, messages } = faithful;

  statement(
    target,
    48,
    'an ack succeeds once it is applied, and one that came too late fails as INVALID',
    withPubsub(target, async (pubsub) => {
      const { subscription, received, publish } = await collected(pubsub);
      await publish('a');
      await expect.poll(() => received.length).toBe(1);
      await nack(target, subscription, received[0]?.ackId);
      await expect.poll(() => received.length).toBe(2);
      const [late, current] = received;
      expect(late && (await outcomeOf(late.ackWithResponse()))).toBe('INVALID');
      expect(backlog(subscription.name)).toBe(1);
      expect(current && (await outcomeOf(current.ackWithResponse()))).toBe('SUCCESS');
      expect(backlog(subscription.name)).toBe(0);
    }),
  );

  statement(
    target,
    48,
    'an ack whose answer is lost is sent again and succeeds',
    withPubsub(target, async (pubsub) => {
      const [topic] = await pubsub.createTopic('orders');
      const [subscription] = await topic.createSubscription('worker', { enableExactlyOnceDelivery: true });
      faults.add({ kind: 'answer-lost', rpc: 'Subscriber.Acknowledge', resource: subscription.name, times: 1 });
      const outcome = new Promise((resolve) => subscription.on('message', (message) => resolve(outcomeOf(message.ackWithResponse()))));
      await topic.publishMessage({ data: Buffer.from('a') });
      expect(await outcome).toBe('SUCCESS');
      expect(faults.counts()['answer-lost']).toBe(1);
    }),
  );

  statement(
    target,
    51,
    'a delivery whose first extension fails for good never reaches the callback; the message comes by a later one',
    withPubsub(target, async (pubsub) => {
      // Later than the first, so that the client does not extend both with one request, which would fail for both.
      const retryPolicy = { minimumBackoff: { seconds: 1 }, maximumBackoff: { seconds: 1 } };
      const { subscription, received, publish } = await collected(pubsub, { retryPolicy });
      await expect.poll(() => faithful.openStreams()).toContain(subscription.name);
      await publish('a');
      // The client collects its first extensions for 100 ms; the nack overtakes them.
      await expect.poll(() => messages(subscription.name)[0]?.lease?.ackId, { interval: 1 }).toBeDefined();
      const [delivered] = messages(subscription.name);
      await nack(target, subscription, delivered?.lease?.ackId);
      await expect.poll(() => received.length, { timeout: 10_000 }).toBe(1);
      expect(received[0]?.ackId).not.toBe(delivered?.lease?.ackId);
      expect(messages(subscription.name)[0]?.deliveryAttempts).toBe(2);
      expect(received[0] && (await outcomeOf(received[0].ackWithResponse()))).toBe('SUCCESS');
      expect(received).toHaveLength(1);
    }),
  );
});

for (const { mode, emulator, good } of [
  { mode: 'faithful', emulator: faithful, good: 'OTHER' },
  { mode: 'clean', emulator: clean, good: 'SUCCESS' },
]) {
  const { target, backlog } = emulator;
  describe(`Pub/Sub exactly-once delivery: a mixed batch, ${mode}`, () => {
    statement(
      target,
      49,
      `of two acks in one request the stale one fails as INVALID, and the client reports the other as ${good}, which is applied`,
      withPubsub(target, async (pubsub) => {
        const { subscription, received, publish } = await collected(pubsub);
        await Promise.all([publish('stale'), publish('good')]);
        await expect.poll(() => received.length).toBe(2);
        const textOf = ({ data }: Message) => data.toString();
        const [stale, other] = [...received].sort((a, b) => (textOf(a) < textOf(b) ? 1 : -1));
        await nack(target, subscription, stale?.ackId);
        await expect.poll(() => received.length).toBe(3);
        const outcomes = [stale, other].map((message) => message && outcomeOf(message.ackWithResponse()));
        expect(await Promise.all(outcomes)).toEqual(['INVALID', good]);
        expect(backlog(subscription.name)).toBe(1);
        expect(received[2] && (await outcomeOf(received[2].ackWithResponse()))).toBe('SUCCESS');
        expect(backlog(subscription.name)).toBe(0);
      }),
    );
  });
}
