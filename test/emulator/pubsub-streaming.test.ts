import type { Subscription } from '@google-cloud/pubsub';
import { afterAll, describe, expect } from 'vitest';
import { statement } from '../support/targets.ts';
import { textOf, textsOf } from './pubsub-raw.ts';
import { acking, codeOf, embeddedPubsub, pubsubTargets, withPubsub, withRawPubsub } from './pubsub-targets.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);

const nextError = (subscription: Subscription) => new Promise<{ code: number }>((resolve) => subscription.once('error', resolve));

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub streams: ${target.name}`, () => {
    statement(
      target,
      20,
      'the first answer says whether the subscription is ordered, before there is a message',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        for (const enableMessageOrdering of [true, false]) {
          const subscription = await raw.createSubscription(`ordered-${enableMessageOrdering}`, topic, { enableMessageOrdering });
          const stream = raw.stream(subscription);
          await expect
            .poll(() => stream.answers[0]?.subscriptionProperties)
            .toEqual({ exactlyOnceDeliveryEnabled: false, messageOrderingEnabled: enableMessageOrdering });
          stream.cancel();
        }
      }),
      { differs: 'answers nothing before there is a message' },
    );

    statement(
      target,
      25,
      'when the server ends the streams, the subscriber opens new ones and reports no error',
      withPubsub(target, async (pubsub) => {
        const [topic] = await pubsub.createTopic('orders');
        const { texts, errors } = await acking(topic);
        await topic.publishMessage({ data: Buffer.from('before') });
        await expect.poll(() => texts).toEqual(['before']);
        embedded.endStreams();
        await topic.publishMessage({ data: Buffer.from('after') });
        await expect.poll(() => texts).toEqual(['before', 'after']);
        expect(errors).toEqual([]);
      }),
      { notApplicable: 'it ends no stream on demand' },
    );

    statement(
      target,
      25,
      'the server ends a stream with UNAVAILABLE',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const stream = raw.stream(await raw.createSubscription('worker', topic));
        await raw.publish(topic, ['1']);
        await stream.count(1);
        embedded.endStreams();
        expect(await stream.ended).toBe('UNAVAILABLE');
      }),
      { notApplicable: 'it ends no stream on demand' },
    );

    statement(
      target,
      26,
      'a stream on a subscription that is missing ends with NOT_FOUND, which the client reports',
      withPubsub(target, async (pubsub) => {
        const subscription = pubsub.subscription('missing');
        const error = nextError(subscription);
        subscription.on('message', () => undefined);
        expect(await codeOf(error.then((found) => Promise.reject(found)))).toBe('NOT_FOUND');
      }),
    );

    statement(
      target,
      27,
      'the deletion of a subscription ends its streams with NOT_FOUND',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        const stream = raw.stream(subscription);
        await raw.publish(topic, ['1']);
        await stream.count(1);
        await raw.call('DeleteSubscription', { subscription });
        expect(await stream.ended).toBe('NOT_FOUND');
      }),
    );

    statement(
      target,
      27,
      'the deletion of a subscription ends a waiting pull with NOT_FOUND',
      withRawPubsub(target, async (raw) => {
        const subscription = await raw.createSubscription('worker', await raw.createTopic('orders'));
        const pull = codeOf(raw.call('Pull', { subscription, maxMessages: 1 }));
        await raw.call('GetSubscription', { subscription });
        await raw.call('DeleteSubscription', { subscription });
        expect(await pull).toBe('NOT_FOUND');
      }),
      { differs: 'lets the pull wait' },
    );

    statement(
      target,
      30,
      'an ack counts on another stream than the delivery, and by a call',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        const first = raw.stream(subscription);
        await raw.publish(topic, ['1', '2', '3']);
        const [one, two, three] = await first.count(3);
        first.cancel();
        await first.ended;
        const second = raw.stream(subscription);
        second.write({ ackIds: [one?.ackId ?? ''], modifyDeadlineAckIds: [three?.ackId ?? ''], modifyDeadlineSeconds: [0] });
        const [again] = await second.count(1);
        expect(again && textOf(again)).toBe(three && textOf(three));
        if (two && again) await raw.acknowledge(subscription, [two, again]);
        second.cancel();
        if (target === embedded.target) expect(embedded.backlog(subscription)).toBe(0);
      }),
    );

    statement(
      target,
      31,
      'streams share the load, and no message is on two of them',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        const streams = [1, 2, 3].map(() => raw.stream(subscription));
        let published = 0;
        // A stream may open late; it has its share from then on.
        while (streams.some(({ received }) => received.length === 0) && published < 20_000) {
          await raw.publish(
            topic,
            Array.from({ length: 20 }, () => String(published++)),
          );
        }
        await expect.poll(() => streams.reduce((sum, { received }) => sum + received.length, 0)).toBe(published);
        expect(new Set(streams.flatMap(({ received }) => textsOf(received))).size).toBe(published);
        for (const { received, cancel } of streams) {
          expect(received.length).toBeGreaterThan(0);
          cancel();
        }
      }),
    );
  });
}
