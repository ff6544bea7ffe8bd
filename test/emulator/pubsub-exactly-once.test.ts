import { afterAll, describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/emulator/faults.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { type RawReceived, textsOf } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

/** Google's emulator is not asked: it knows no exactly-once delivery. */
const manual = await embeddedPubsub(manualTime());
afterAll(manual.stop);

const exactlyOnce = { enableExactlyOnceDelivery: true };

describe('Pub/Sub exactly-once delivery: on the wire', () => {
  const { target, time } = manual;

  statement(
    target,
    49,
    'of a mixed request the good ids are applied and the bad ones named',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, exactlyOnce);
      await raw.publish(topic, ['1', '2']);
      const [good, bad] = await raw.pull(subscription);
      if (!good || !bad) throw new Error('two messages were published');
      await raw.modifyDeadline(subscription, [bad], 0);
      const refused = raw.acknowledge(subscription, [bad, good]);
      expect(await codeOf(refused)).toBe('INVALID_ARGUMENT');
      const trailer: unknown = await refused.catch((error: { metadata: { get(name: string): Buffer[] } }) =>
        error.metadata.get('grpc-status-details-bin')[0]?.toString('latin1'),
      );
      expect(trailer).toContain('EXACTLY_ONCE_ACKID_FAILURE');
      expect(trailer).toMatch(new RegExp(`${bad.ackId}.{2}PERMANENT_FAILURE_INVALID_ACK_ID`, 's'));
      expect(trailer).not.toContain(good.ackId);
      expect(textsOf(await raw.pull(subscription))).toEqual(textsOf([bad]));
      expect(manual.backlog(subscription)).toBe(1);
    }),
  );

  statement(
    target,
    50,
    'an id is of no more use once its deadline is over, even before the message comes again',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, exactlyOnce);
      await raw.publish(topic, ['1']);
      const received = await raw.pull(subscription);
      await time.advance(10_000);
      expect(await codeOf(raw.acknowledge(subscription, received))).toBe('INVALID_ARGUMENT');
      expect(await codeOf(raw.modifyDeadline(subscription, received, 10))).toBe('INVALID_ARGUMENT');
      expect(await raw.pull(subscription)).toHaveLength(1);
    }),
  );

  statement(
    target,
    50,
    'after an ack that counted none of 1,000 messages comes again, whatever is nacked, expires or is acked late',
    withRawPubsub(target, async (raw) => {
      const random = seededRandom(50);
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, exactlyOnce);
      await raw.publish(
        topic,
        Array.from({ length: 1_000 }, (_, index) => String(index)),
      );
      const [done, stale]: [Set<string>, RawReceived[]] = [new Set(), []];
      for (let round = 0; manual.backlog(subscription) > 0 && round < 100; round++) {
        const received = await raw.pull(subscription);
        expect(textsOf(received).filter((text) => done.has(text))).toEqual([]);
        const acked = received.filter(() => random() < 0.3);
        const rest = received.filter((one) => !acked.includes(one));
        const nacked = rest.filter(() => random() < 0.5);
        if (stale.length > 0) expect(await codeOf(raw.acknowledge(subscription, stale))).toBe('INVALID_ARGUMENT');
        if (acked.length > 0) await raw.acknowledge(subscription, acked);
        if (nacked.length > 0) await raw.modifyDeadline(subscription, nacked, 0);
        for (const text of textsOf(acked)) done.add(text);
        stale.splice(0, stale.length, ...rest);
        await time.advance(10_000);
      }
      expect(done.size).toBe(1_000);
    }),
  );

  test(
    'a stream says which of its acks and deadlines counted',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, exactlyOnce);
      await raw.publish(topic, ['1', '2']);
      const stream = raw.stream(subscription);
      const [one, two] = (await stream.count(2)).map(({ ackId }) => ackId);
      if (!one || !two) throw new Error('two messages were published');
      stream.write({ ackIds: [one, 'stale'], modifyDeadlineAckIds: [two, 'gone'], modifyDeadlineSeconds: [20, 20] });
      await expect.poll(() => stream.answers.length).toBe(4);
      const [acks, deadlines] = stream.answers.slice(-2);
      expect(acks).toMatchObject({ acknowledgeConfirmation: { ackIds: [one], invalidAckIds: ['stale'] } });
      expect(deadlines).toMatchObject({ modifyAckDeadlineConfirmation: { ackIds: [two], invalidAckIds: ['gone'] } });
      expect(stream.answers[0]?.subscriptionProperties).toEqual({ exactlyOnceDeliveryEnabled: true, messageOrderingEnabled: false });
      stream.cancel();
    }),
  );

  test(
    'is refused for push, when a subscription is made and later, and is not hit by duplicates',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const pushConfig = { pushEndpoint: 'http://127.0.0.1:9/' };
      expect(await codeOf(raw.createSubscription('pusher', topic, { ...exactlyOnce, pushConfig }))).toBe('INVALID_ARGUMENT');
      const subscription = await raw.createSubscription('worker', topic, exactlyOnce);
      expect(await codeOf(raw.call('ModifyPushConfig', { subscription, pushConfig }))).toBe('INVALID_ARGUMENT');
      const removeFault = manual.faults.add({ kind: 'duplicate' });
      await raw.publish(topic, ['1']);
      removeFault();
      expect(await raw.pull(subscription)).toHaveLength(1);
    }),
  );

  test(
    'together with ordering, a nack takes the later messages of its key along, but none that is acked',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, { ...exactlyOnce, enableMessageOrdering: true });
      await raw.publish(topic, ['1', '2', '3', '4'], 'k');
      const received = await raw.pull(subscription);
      await raw.publish(topic, ['5'], 'k');
      await raw.acknowledge(
        subscription,
        [received[0], received[2]].flatMap((one) => one ?? []),
      );
      await raw.modifyDeadline(subscription, received.slice(1, 2), 0);
      expect(await codeOf(raw.acknowledge(subscription, received.slice(3)))).toBe('INVALID_ARGUMENT');
      const again = await raw.pull(subscription);
      expect(textsOf(again)).toEqual(['2', '4', '5']);
      await raw.acknowledge(subscription, again);
      expect(manual.backlog(subscription)).toBe(0);
      await raw.publish(topic, ['6'], 'k');
      expect(textsOf(await raw.pull(subscription))).toEqual(['6']);
    }),
  );
});
