import { afterAll, describe, expect, test } from 'vitest';
import { statement } from '../support/targets.ts';
import { textsOf } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, pubsubTargets, withPubsub, withRawPubsub } from './pubsub-targets.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);
const { target: embeddedTarget } = embedded;
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub administration: ${target.name}`, () => {
    statement(
      target,
      6,
      'a topic is made once, a missing one is not found, and autoCreate makes it',
      withPubsub(target, async (pubsub) => {
        await pubsub.createTopic('orders');
        expect(await codeOf(pubsub.createTopic('orders'))).toBe('ALREADY_EXISTS');
        expect(await codeOf(pubsub.topic('missing').getMetadata())).toBe('NOT_FOUND');
        const [made] = await pubsub.topic('missing').get({ autoCreate: true });
        expect(await made.exists()).toEqual([true]);
      }),
    );

    statement(
      target,
      7,
      'a subscription is made once, needs its topic, and has an ack deadline of 10 s by default',
      withPubsub(target, async (pubsub) => {
        const [topic] = await pubsub.createTopic('orders');
        expect(await codeOf(pubsub.topic('missing').createSubscription('of-missing'))).toBe('NOT_FOUND');
        const [subscription] = await topic.createSubscription('worker', { ackDeadlineSeconds: 0 });
        expect(await codeOf(topic.createSubscription('worker'))).toBe('ALREADY_EXISTS');
        const [metadata] = await subscription.getMetadata();
        expect(metadata.ackDeadlineSeconds).toBe(10);
      }),
    );

    statement(
      target,
      7,
      'an ack deadline lies from 10 to 600 s',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const create = (ackDeadlineSeconds: number) => raw.createSubscription(`asks-${ackDeadlineSeconds}`, topic, { ackDeadlineSeconds });
        expect(await Promise.all([9, 10, 600, 601].map((asked) => codeOf(create(asked))))).toEqual([
          'INVALID_ARGUMENT',
          'OK',
          'OK',
          'INVALID_ARGUMENT',
        ]);
      }),
      { differs: 'accepts 9 s' },
    );

    statement(
      target,
      8,
      'what is set when a subscription is made reads back',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const dead = await raw.createTopic('dead');
        const settings = {
          ackDeadlineSeconds: 30,
          retainAckedMessages: true,
          messageRetentionDuration: seconds(3_600),
          labels: { team: 'a' },
          enableMessageOrdering: true,
          retryPolicy: { minimumBackoff: seconds(1), maximumBackoff: seconds(4) },
          deadLetterPolicy: { deadLetterTopic: dead, maxDeliveryAttempts: 7 },
        };
        const subscription = await raw.createSubscription('worker', topic, settings);
        expect(await raw.call('GetSubscription', { subscription })).toMatchObject({ name: subscription, topic, ...settings });
      }),
    );

    statement(
      target,
      9,
      'an update changes what its mask names and nothing else',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const name = await raw.createSubscription('worker', topic, { ackDeadlineSeconds: 30, labels: { team: 'a' } });
        const asked = { name, ackDeadlineSeconds: 60, labels: { team: 'b' } };
        await raw.call('UpdateSubscription', { subscription: asked, updateMask: { paths: ['ack_deadline_seconds'] } });
        const kept = { ackDeadlineSeconds: 60, labels: { team: 'a' } };
        expect(await raw.call('GetSubscription', { subscription: name })).toMatchObject(kept);
        for (const paths of [[], ['no_such_field'], ['filter'], ['ackDeadlineSeconds']]) {
          const update = raw.call('UpdateSubscription', { subscription: { ...asked, filter: 'attributes:a' }, updateMask: { paths } });
          expect(await codeOf(update), `mask ${paths}`).toBe('INVALID_ARGUMENT');
        }
        expect(await raw.call('GetSubscription', { subscription: name })).toMatchObject(kept);
      }),
    );

    statement(
      target,
      10,
      'a subscription outlives its topic with its backlog, and a new topic of that name does not feed it',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        await raw.publish(topic, ['before']);
        await raw.call('DeleteTopic', { topic });
        expect(await raw.call('GetSubscription', { subscription })).toMatchObject({ topic: '_deleted-topic_' });
        await raw.createTopic('orders');
        await raw.publish(topic, ['after']);
        const received = await raw.pull(subscription);
        expect(textsOf(received)).toEqual(['before']);
        await raw.acknowledge(subscription, received);
        expect(await raw.pull(subscription)).toEqual([]);
      }),
    );

    statement(
      target,
      11,
      'a dead-letter policy needs its topic and has 5 attempts by default',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const dead = await raw.createTopic('dead');
        const refused = raw.createSubscription('refused', topic, {
          deadLetterPolicy: { deadLetterTopic: `${raw.project}/topics/missing` },
        });
        expect(await codeOf(refused)).toBe('NOT_FOUND');
        const subscription = await raw.createSubscription('worker', topic, { deadLetterPolicy: { deadLetterTopic: dead } });
        const { deadLetterPolicy } = await raw.call('GetSubscription', { subscription });
        expect(deadLetterPolicy).toEqual({ deadLetterTopic: dead, maxDeliveryAttempts: 5 });
      }),
    );

    statement(
      target,
      11,
      'a dead-letter policy has 5 to 100 attempts',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const create = (maxDeliveryAttempts: number) =>
          raw.createSubscription(`asks-${maxDeliveryAttempts}`, topic, {
            deadLetterPolicy: { deadLetterTopic: topic, maxDeliveryAttempts },
          });
        expect(await Promise.all([4, 5, 100, 101].map((asked) => codeOf(create(asked))))).toEqual([
          'INVALID_ARGUMENT',
          'OK',
          'OK',
          'INVALID_ARGUMENT',
        ]);
      }),
      { differs: 'answers OUT_OF_RANGE' },
    );
  });
}

describe('Pub/Sub administration: what is missing', () => {
  for (const [what, settings] of Object.entries({
    'subscription filters': { filter: 'attributes:kind' },
    'exactly-once delivery': { enableExactlyOnceDelivery: true },
    'subscriptions with bigqueryConfig': { bigqueryConfig: { table: 'a.b.c' } },
    'subscriptions with cloudStorageConfig': { cloudStorageConfig: { bucket: 'b' } },
    'push without wrapper': { pushConfig: { pushEndpoint: 'http://127.0.0.1:9/', noWrapper: {} } },
    'push with OIDC tokens': { pushConfig: { pushEndpoint: 'http://127.0.0.1:9/', oidcToken: { serviceAccountEmail: 'a@b.c' } } },
  })) {
    test(
      `refuses by name: ${what}`,
      withRawPubsub(embeddedTarget, async (raw) => {
        const topic = await raw.createTopic('orders');
        const refused = raw.createSubscription('worker', topic, settings);
        await expect(refused).rejects.toMatchObject({ details: `the embedded emulator does not support ${what}` });
        expect(await codeOf(refused)).toBe('UNIMPLEMENTED');
      }),
    );
  }

  test(
    'refuses by name: seek and snapshots',
    withRawPubsub(embeddedTarget, async (raw) => {
      const subscription = `${raw.project}/subscriptions/worker`;
      for (const method of ['Seek', 'CreateSnapshot', 'ListSnapshots']) {
        const refused = raw.call(method, { subscription });
        await expect(refused).rejects.toMatchObject({ details: expect.stringContaining(`Subscriber.${method}`) });
        expect(await codeOf(refused)).toBe('UNIMPLEMENTED');
      }
    }),
  );
});
