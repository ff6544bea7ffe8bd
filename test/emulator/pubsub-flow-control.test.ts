import { afterAll, describe, expect } from 'vitest';
import { statement } from '../support/targets.ts';
import { embeddedPubsub, pubsubTargets, withRawPubsub } from './pubsub-targets.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);

const keepAlive = { subscription: '', streamAckDeadlineSeconds: 0, maxOutstandingMessages: '0', maxOutstandingBytes: '0' };
const withoutFlowControl = { differs: 'takes no notice of max_outstanding_messages and max_outstanding_bytes' };

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub flow control: ${target.name}`, () => {
    statement(
      target,
      21,
      'an all-zero request leaves the stream and its limits as they are',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        const stream = raw.stream(subscription, { maxOutstandingMessages: '1' });
        stream.write(keepAlive);
        await raw.publish(topic, ['1', '2']);
        const [first] = await stream.count(1);
        stream.write(keepAlive);
        expect(await raw.pull(subscription)).toHaveLength(1);
        expect(stream.received).toHaveLength(1);
        await raw.publish(topic, ['3']);
        if (first) await raw.acknowledge(subscription, [first]);
        await stream.count(2);
        stream.cancel();
        expect(await stream.ended).toBe('CANCELLED');
      }),
      withoutFlowControl,
    );

    statement(
      target,
      22,
      'a stream of one outstanding message has never two',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        const stream = raw.stream(subscription, { maxOutstandingMessages: '1' });
        const texts = ['1', '2', '3', '4', '5'];
        await raw.publish(topic, texts);
        for (const [index] of texts.entries()) {
          const received = await stream.count(index + 1);
          expect(received).toHaveLength(index + 1);
          await raw.acknowledge(subscription, received.slice(index));
        }
        stream.cancel();
      }),
      withoutFlowControl,
    );

    for (const later of [
      { maxOutstandingMessages: '2' },
      { maxOutstandingBytes: '2' },
      { subscription: 'projects/p/subscriptions/other' },
    ]) {
      statement(
        target,
        22,
        `a stream that sets ${Object.keys(later)} again ends with INVALID_ARGUMENT`,
        withRawPubsub(target, async (raw) => {
          const topic = await raw.createTopic('orders');
          const subscription = await raw.createSubscription('worker', topic);
          const stream = raw.stream(subscription, { maxOutstandingMessages: '1' });
          await raw.publish(topic, ['1']);
          await stream.count(1);
          stream.write(later);
          expect(await stream.ended).toBe('INVALID_ARGUMENT');
        }),
        'subscription' in later ? undefined : withoutFlowControl,
      );
    }

    statement(
      target,
      23,
      'each of two streams has its own limit',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        await raw.publish(topic, Array(40).fill('a'));
        const streams = [1, 2].map(() => raw.stream(subscription, { maxOutstandingMessages: '7' }));
        await Promise.all(streams.map((stream) => stream.count(7)));
        expect(await raw.pull(subscription)).toHaveLength(26);
        for (const { received, cancel } of streams) {
          expect(received).toHaveLength(7);
          cancel();
        }
      }),
      withoutFlowControl,
    );

    statement(
      target,
      24,
      'outstanding bytes are limited, and a message above the limit comes alone',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        for (const orderingKey of ['', 'k']) {
          const subscription = await raw.createSubscription(`key-${orderingKey}`, topic, { enableMessageOrdering: true });
          const large = 'a'.repeat(3_000);
          const stream = raw.stream(subscription, { maxOutstandingBytes: '2000' });
          await raw.publish(topic, [large, large], orderingKey);
          expect(await stream.count(1)).toHaveLength(1);
          await raw.call('GetSubscription', { subscription });
          expect(stream.received).toHaveLength(1);
          await raw.acknowledge(subscription, stream.received);
          await stream.count(2);
          stream.cancel();
        }
      }),
      withoutFlowControl,
    );
  });
}
