import { afterAll, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { textsOf, worker } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

/** Days pass here: on the embedded emulator alone. */
const { backlog, endStreams, stop, subscriptions, target, time } = await embeddedPubsub(manualTime());
afterAll(stop);

const dayMs = 86_400_000;
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });

describe('Pub/Sub retention', () => {
  statement(
    target,
    40,
    'an unacked message is there for seven days and gone then, each by its own age',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      await raw.publish(topic, ['1']);
      await time.advance(1_000);
      await raw.publish(topic, ['2']);
      await time.advance(7 * dayMs - 1_001);
      expect(backlog(subscription)).toBe(2);
      await time.advance(1);
      expect(backlog(subscription)).toBe(1);
      expect(textsOf(await raw.pull(subscription))).toEqual(['2']);
      await time.advance(1_000);
      expect(backlog(subscription)).toBe(0);
      expect(await raw.pull(subscription)).toEqual([]);
    }),
  );

  statement(
    target,
    40,
    'the retention of the subscription counts, as it is at the time',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { messageRetentionDuration: seconds(600) });
      await raw.publish(topic, ['1']);
      await time.advance(599_999);
      expect(backlog(subscription)).toBe(1);
      await raw.call('UpdateSubscription', {
        subscription: { name: subscription, messageRetentionDuration: seconds(3_600) },
        updateMask: { paths: ['message_retention_duration'] },
      });
      await time.advance(3_000_000);
      expect(backlog(subscription)).toBe(1);
      await time.advance(1);
      expect(backlog(subscription)).toBe(0);
    }),
  );

  test(
    'messages that are older than a shortened retention are gone at once',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      await raw.publish(topic, ['1']);
      await time.advance(600_000);
      await raw.publish(topic, ['2']);
      await raw.call('UpdateSubscription', {
        subscription: { name: subscription, messageRetentionDuration: seconds(600) },
        updateMask: { paths: ['message_retention_duration'] },
      });
      await time.settled();
      expect(textsOf(await raw.pull(subscription))).toEqual(['2']);
    }),
  );

  test(
    'a message that is out is gone with its lease, and its ack id is stale',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { messageRetentionDuration: seconds(600), enableExactlyOnceDelivery: true });
      await raw.publish(topic, ['1']);
      const received = await raw.pull(subscription);
      await raw.modifyDeadline(subscription, received, 600);
      await time.advance(600_000);
      expect(backlog(subscription)).toBe(0);
      expect(await codeOf(raw.acknowledge(subscription, received))).toBe('INVALID_ARGUMENT');
    }),
  );

  test(
    'the head of a key that is gone lets the rest of its key go on',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { messageRetentionDuration: seconds(600), enableMessageOrdering: true });
      await raw.publish(topic, ['1'], 'k');
      await time.advance(300_000);
      await raw.modifyDeadline(subscription, await raw.pull(subscription), 600);
      await raw.publish(topic, ['2', '3'], 'k');
      await raw.publish(topic, ['l'], 'l');
      await time.advance(299_999);
      expect(textsOf(await raw.pull(subscription))).toEqual(['l']);
      await time.advance(1);
      const rest = await raw.pull(subscription);
      expect(textsOf(rest)).toEqual(['2', '3']);
      await raw.modifyDeadline(subscription, rest, 0);
      await time.advance(300_000);
      expect([await raw.pull(subscription), backlog(subscription)]).toEqual([[], 0]);
      await raw.publish(topic, ['never seen'], 'm');
      await time.advance(600_000);
      await raw.publish(topic, ['5'], 'm');
      await raw.publish(topic, ['4'], 'k');
      expect(textsOf(await raw.pull(subscription)).sort()).toEqual(['4', '5']);
    }),
  );

  test(
    'a change of settings takes nothing from a key that is under way',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { enableMessageOrdering: true });
      await raw.publish(topic, ['1', '2', '3'], 'k');
      const received = await raw.pull(subscription);
      await raw.acknowledge(subscription, received.slice(2));
      await raw.call('UpdateSubscription', {
        subscription: { name: subscription, labels: { a: 'b' } },
        updateMask: { paths: ['labels'] },
      });
      await raw.modifyDeadline(subscription, received.slice(1, 2), 0);
      await raw.acknowledge(subscription, received.slice(0, 1));
      const again = await raw.pull(subscription);
      expect(textsOf(again)).toEqual(['2', '3']);
      await raw.acknowledge(subscription, again);
      expect(backlog(subscription)).toBe(0);
    }),
  );

  test(
    'a topic that keeps messages longer keeps them for its subscriptions too, which say so',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { messageRetentionDuration: seconds(600) });
      await raw.call('UpdateTopic', {
        topic: { name: topic, messageRetentionDuration: seconds(3_600) },
        updateMask: { paths: ['message_retention_duration'] },
      });
      expect(await raw.call('GetSubscription', { subscription })).toMatchObject({ topicMessageRetentionDuration: seconds(3_600) });
      await raw.publish(topic, ['1']);
      await time.advance(3_599_999);
      expect(backlog(subscription)).toBe(1);
      await time.advance(1);
      expect(backlog(subscription)).toBe(0);
    }),
  );

  for (const retention of [599, 31 * 86_400 + 1]) {
    test(
      `a retention of ${retention} s is refused, of a topic and of a subscription`,
      withRawPubsub(target, async (raw) => {
        const messageRetentionDuration = seconds(retention);
        const topic = await raw.createTopic('orders');
        expect(await codeOf(raw.createSubscription('worker', topic, { messageRetentionDuration }))).toBe('INVALID_ARGUMENT');
        const refused = raw.call('CreateTopic', { name: `${raw.project}/topics/other`, messageRetentionDuration });
        await expect(refused).rejects.toMatchObject({
          details: expect.stringMatching(new RegExp(`retention.* ${retention};.*600 to 2678400`)),
        });
      }),
    );
  }
});

describe('Pub/Sub expiration', () => {
  const exists = (subscription: string) => subscriptions().some(({ name }) => name === subscription);

  test(
    'a subscription that nobody uses for its time to live is deleted; a call is a use, and an open stream as long as it is open',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { expirationPolicy: { ttl: seconds(86_400) } });
      await time.advance(dayMs - 1);
      await raw.call('GetSubscription', { subscription });
      await raw.publish(topic, ['1']);
      await time.advance(dayMs - 1);
      expect(exists(subscription)).toBe(true);
      const stream = raw.stream(subscription);
      await raw.acknowledge(subscription, await stream.count(1));
      await time.advance(2.5 * dayMs);
      expect(exists(subscription)).toBe(true);
      endStreams();
      await time.advance(dayMs - 1);
      expect(exists(subscription)).toBe(true);
      await time.advance(1);
      expect(exists(subscription)).toBe(false);
      expect(await codeOf(raw.pull(subscription))).toBe('NOT_FOUND');
    }),
  );

  test(
    'without a policy it is deleted after 31 days, and never under a policy without a time to live',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      const eternal = await raw.createSubscription('eternal', topic, { expirationPolicy: {} });
      await time.advance(31 * dayMs - 1);
      expect(exists(subscription)).toBe(true);
      await time.advance(1);
      expect(exists(subscription)).toBe(false);
      await time.advance(400 * dayMs);
      expect(exists(eternal)).toBe(true);
    }),
  );

  test(
    'a time to live of less than a day is refused',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const refused = raw.createSubscription('worker', topic, { expirationPolicy: { ttl: seconds(86_399) } });
      await expect(refused).rejects.toMatchObject({ details: expect.stringContaining('86399') });
      expect(await codeOf(refused)).toBe('INVALID_ARGUMENT');
    }),
  );
});
