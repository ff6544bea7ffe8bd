import { afterAll, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { textsOf, worker } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

/** Deadlines on manual time, and what no client sends: on the embedded emulator alone. */
const { stop, target, time } = await embeddedPubsub(manualTime());
afterAll(stop);

describe('Pub/Sub stream requests', () => {
  statement(
    target,
    21,
    'a stream outlives silence, and the all-zero request that ends each 30 s of it changes nothing',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      const stream = raw.stream(subscription, { streamAckDeadlineSeconds: 20, maxOutstandingMessages: '2' });
      await raw.call('GetSubscription', { subscription });
      for (const _ of [1, 2, 3]) {
        await time.advance(30_000);
        stream.write({});
      }
      await raw.publish(topic, ['1', '2', '3']);
      await stream.count(2);
      await raw.call('GetSubscription', { subscription });
      expect(textsOf(stream.received)).toEqual(['1', '2']);
      await time.advance(19_999);
      expect(stream.received).toHaveLength(2);
      await time.advance(1);
      await stream.count(4);
      stream.cancel();
      expect(await stream.ended).toBe('CANCELLED');
    }),
  );

  statement(
    target,
    29,
    'the ack deadline of a stream wins over that of the subscription, and a later request changes it',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { ackDeadlineSeconds: 60 });
      const stream = raw.stream(subscription, { streamAckDeadlineSeconds: 10 });
      await raw.publish(topic, ['1']);
      await stream.count(1);
      await time.advance(9_999);
      expect(stream.received).toHaveLength(1);
      stream.write({ streamAckDeadlineSeconds: 20 });
      await raw.call('GetSubscription', { subscription });
      await time.advance(1);
      await stream.count(2);
      await time.advance(19_999);
      expect(stream.received).toHaveLength(2);
      await time.advance(1);
      await stream.count(3);
      stream.cancel();
    }),
  );

  test(
    'a stream without a deadline of its own follows that of the subscription when it changes',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      const stream = raw.stream(subscription, { streamAckDeadlineSeconds: 0 });
      await raw.call('UpdateSubscription', {
        subscription: { name: subscription, ackDeadlineSeconds: 60 },
        updateMask: { paths: ['ack_deadline_seconds'] },
      });
      await raw.publish(topic, ['1']);
      await stream.count(1);
      await time.advance(59_999);
      expect(stream.received).toHaveLength(1);
      await time.advance(1);
      await stream.count(2);
      stream.cancel();
    }),
  );

  test(
    'messages on a stream that is gone wait for their deadline, and come in another then',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      const stream = raw.stream(subscription);
      await raw.publish(topic, ['1']);
      await stream.count(1);
      stream.cancel();
      await stream.ended;
      await raw.publish(topic, ['2']);
      const received = await raw.pull(subscription);
      expect(textsOf(received)).toEqual(['2']);
      await raw.acknowledge(subscription, received);
      const other = raw.stream(subscription);
      await time.advance(9_999);
      expect(other.received).toEqual([]);
      await time.advance(1);
      expect(textsOf(await other.count(1))).toEqual(['1']);
      other.cancel();
    }),
  );

  for (const bad of [
    { streamAckDeadlineSeconds: 9 },
    { streamAckDeadlineSeconds: 601 },
    { modifyDeadlineAckIds: ['a'], modifyDeadlineSeconds: [] },
    { modifyDeadlineAckIds: ['a'], modifyDeadlineSeconds: [-1] },
    { modifyDeadlineAckIds: ['a'], modifyDeadlineSeconds: [601] },
  ]) {
    test(
      `${JSON.stringify(bad)} ends a stream with INVALID_ARGUMENT, as its first request and later, and takes no messages`,
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw);
        expect(await raw.stream(subscription, bad).ended).toBe('INVALID_ARGUMENT');
        const stream = raw.stream(subscription);
        stream.write(bad);
        expect(await stream.ended).toBe('INVALID_ARGUMENT');
        await raw.publish(topic, ['1']);
        expect(await raw.pull(subscription)).toHaveLength(1);
      }),
    );
  }

  test(
    'what follows a bad request on its stream opens no other',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      const stream = raw.stream(subscription, { streamAckDeadlineSeconds: 9 });
      stream.write({ subscription, streamAckDeadlineSeconds: 600 });
      expect(await stream.ended).toBe('INVALID_ARGUMENT');
      await raw.publish(topic, ['1']);
      expect(await raw.pull(subscription)).toHaveLength(1);
    }),
  );

  test(
    'a client that has said its last is answered with OK, and takes no more messages',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      const stream = raw.stream(subscription);
      stream.end();
      expect(await stream.ended).toBe('OK');
      await raw.publish(topic, ['1']);
      expect(await raw.pull(subscription)).toHaveLength(1);
    }),
  );

  test(
    'a pull that its client gives up takes no messages',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      expect(await codeOf(raw.call('Pull', { subscription, maxMessages: 1 }, 100))).toBe('DEADLINE_EXCEEDED');
      await raw.publish(topic, ['1']);
      expect(await raw.pull(subscription)).toHaveLength(1);
    }),
  );
});
