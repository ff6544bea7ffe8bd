import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { textsOf } from './pubsub-raw.ts';
import { embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

const { backlog, faults, stop, target, time } = await embeddedPubsub(manualTime());
afterAll(stop);
beforeEach(() => faults.replace([]));

describe('Pub/Sub faults: what is published', () => {
  test(
    'a duplicate is an independent copy of one message: same id, own ack id, there at the same time',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic);
      const other = await raw.createSubscription('other', topic);
      faults.add({ kind: 'duplicate', resource: 'worker', times: 1 });
      const [id] = await raw.publish(topic, ['a']);
      await raw.publish(topic, ['b']);
      const received = await raw.pull(subscription);
      expect(textsOf(received)).toEqual(['a', 'a', 'b']);
      expect(received.slice(0, 2).map(({ message }) => message.messageId)).toEqual([id, id]);
      expect(new Set(received.map(({ ackId }) => ackId)).size).toBe(3);
      await raw.acknowledge(subscription, received.slice(0, 1));
      expect(backlog(subscription)).toBe(2);
      expect(textsOf(await raw.pull(other))).toEqual(['a', 'b']);
    }),
  );

  test(
    'a redelivery is not duplicated again',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic);
      faults.add({ kind: 'duplicate' });
      await raw.publish(topic, ['a']);
      for (let round = 0; round < 3; round++) {
        const received = await raw.pull(subscription);
        expect(received).toHaveLength(2);
        await raw.modifyDeadline(subscription, received, 0);
      }
    }),
  );

  test(
    'a message that is held back is overtaken, and comes after a tenth to all of delayMs',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic);
      faults.add({ kind: 'reorder', times: 1, delayMs: 1_000 });
      await raw.publish(topic, ['1']);
      await raw.publish(topic, ['2']);
      expect(textsOf(await raw.pull(subscription))).toEqual(['2']);
      await time.advance(99);
      expect(await raw.pull(subscription)).toEqual([]);
      await time.advance(901);
      expect(textsOf(await raw.pull(subscription))).toEqual(['1']);
    }),
  );

  test(
    'an ordered message is not held back, and its duplicate stays beside it',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, { enableMessageOrdering: true });
      faults.add({ kind: 'reorder', delayMs: 1_000 });
      faults.add({ kind: 'duplicate', times: 1 });
      await raw.publish(topic, ['1', '2'], 'k');
      expect(textsOf(await raw.pull(subscription))).toEqual(['1', '1', '2']);
    }),
  );

  test(
    'a delayed message comes after delayMs and not before, and takes its ordering key with it but nothing else',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, { enableMessageOrdering: true });
      faults.add({ kind: 'delay', times: 1, delayMs: 30_000 });
      await raw.publish(topic, ['k1', 'k2'], 'k');
      await raw.publish(topic, ['l1'], 'l');
      faults.add({ kind: 'delay', times: 1, delayMs: 30_000 });
      await raw.publish(topic, ['free1', 'free2']);
      const first = await raw.pull(subscription);
      expect(textsOf(first).sort()).toEqual(['free2', 'l1']);
      await raw.acknowledge(subscription, first);
      await time.advance(29_999);
      expect(await raw.pull(subscription)).toEqual([]);
      await time.advance(1);
      expect(textsOf(await raw.pull(subscription)).sort()).toEqual(['free1', 'k1', 'k2']);
    }),
  );
});
