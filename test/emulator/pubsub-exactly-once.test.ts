import { AckError, type Message } from '@google-cloud/pubsub';
import { afterAll, describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/emulator/faults.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { type RawReceived, rawPubsub, textsOf } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, withPubsub, withRawPubsub } from './pubsub-targets.ts';

/** Google's emulator is not asked: it knows no exactly-once delivery. */
const embedded = await embeddedPubsub();
afterAll(embedded.stop);
const manual = await embeddedPubsub(manualTime());
afterAll(manual.stop);

const exactlyOnce = { enableExactlyOnceDelivery: true };
const outcomeOf = (ack: Promise<string>) => ack.catch((error: unknown) => (error instanceof AckError ? error.errorCode : error));

describe('Pub/Sub exactly-once delivery: the client', () => {
  const { target } = embedded;

  statement(
    target,
    48,
    'an ack succeeds once it is applied, and one that came too late fails as INVALID',
    withPubsub(target, async (pubsub) => {
      const [topic] = await pubsub.createTopic('orders');
      const [subscription] = await topic.createSubscription('worker', exactlyOnce);
      const received: Message[] = [];
      subscription.on('message', (message) => received.push(message));
      await topic.publishMessage({ data: Buffer.from('a') });
      await expect.poll(() => received.length).toBe(1);
      const raw = rawPubsub(target, pubsub.projectId);
      await raw.call('ModifyAckDeadline', { subscription: subscription.name, ackIds: [received[0]?.ackId], ackDeadlineSeconds: 0 });
      raw.close();
      await expect.poll(() => received.length).toBe(2);
      const [late, current] = received;
      expect(late && (await outcomeOf(late.ackWithResponse()))).toBe('INVALID');
      expect(embedded.backlog(subscription.name)).toBe(1);
      expect(current && (await outcomeOf(current.ackWithResponse()))).toBe('SUCCESS');
      expect(embedded.backlog(subscription.name)).toBe(0);
    }),
  );

  statement(
    target,
    48,
    'an ack whose answer is lost is sent again and succeeds',
    withPubsub(target, async (pubsub) => {
      const [topic] = await pubsub.createTopic('orders');
      const [subscription] = await topic.createSubscription('worker', exactlyOnce);
      embedded.faults.add({ kind: 'answer-lost', rpc: 'Subscriber.Acknowledge', resource: subscription.name, times: 1 });
      const outcome = new Promise((resolve) => subscription.on('message', (message) => resolve(outcomeOf(message.ackWithResponse()))));
      await topic.publishMessage({ data: Buffer.from('a') });
      expect(await outcome).toBe('SUCCESS');
      expect(embedded.faults.counts()['answer-lost']).toBe(1);
    }),
  );
});

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
    'after an ack that counted a message never comes again, whatever is nacked, expires or is acked late',
    withRawPubsub(target, async (raw) => {
      const random = seededRandom(50);
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, exactlyOnce);
      await raw.publish(
        topic,
        Array.from({ length: 250 }, (_, index) => String(index)),
      );
      const [done, stale]: [Set<string>, RawReceived[]] = [new Set(), []];
      for (let round = 0; manual.backlog(subscription) > 0 && round < 100; round++) {
        const received = await raw.pull(subscription);
        for (const text of textsOf(received)) expect(done).not.toContain(text);
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
      expect(done.size).toBe(250);
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
});
