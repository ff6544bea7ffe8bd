import { afterAll, describe, expect, test } from 'vitest';
import { statement } from '../support/targets.ts';
import { rawPubsub, textsOf } from './pubsub-raw.ts';
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
          filter: 'attributes:kind',
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

    statement(
      target,
      12,
      'lists come in pages and hold what belongs to the project',
      withRawPubsub(target, async (raw) => {
        const ids = ['aaa', 'bbb', 'ccc'];
        const topics = await Promise.all(ids.map((id) => raw.createTopic(id)));
        const subscriptions = await Promise.all(ids.map((id) => raw.createSubscription(id, topics[0] ?? '')));
        const stranger = rawPubsub(target, `${raw.project.slice('projects/'.length)}-stranger`);
        await stranger.createSubscription('aaa', await stranger.createTopic('aaa'));
        stranger.close();
        const listed = async (method: string, request: object, field: string) => {
          const pages: string[][] = [];
          let pageToken = '';
          do {
            const answer: Record<string, unknown> = { ...(await raw.call(method, { ...request, pageSize: 2, pageToken })) };
            pages.push((answer[field] as (string | { name: string })[]).map((one) => (typeof one === 'string' ? one : one.name)));
            pageToken = String(answer.nextPageToken);
          } while (pageToken !== '');
          expect(pages.map(({ length }) => length)).toEqual([2, 1]);
          return pages.flat().sort();
        };
        expect(await listed('ListTopics', { project: raw.project }, 'topics')).toEqual(topics);
        expect(await listed('ListSubscriptions', { project: raw.project }, 'subscriptions')).toEqual(subscriptions);
        expect(await listed('ListTopicSubscriptions', { topic: topics[0] }, 'subscriptions')).toEqual(subscriptions);
      }),
    );
  });
}

/** Google's emulator does not have it. */
describe('Pub/Sub administration: detach', () => {
  test(
    'a detached subscription has lost its messages, gets no more and cannot be pulled',
    withRawPubsub(embeddedTarget, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic);
      await raw.publish(topic, ['1']);
      await raw.call('DetachSubscription', { subscription });
      await raw.publish(topic, ['2']);
      expect(await codeOf(raw.pull(subscription))).toBe('FAILED_PRECONDITION');
      expect(await raw.call('GetSubscription', { subscription })).toMatchObject({ detached: true });
      expect(embedded.backlog(subscription)).toBe(0);
    }),
  );
});

describe('Pub/Sub administration: what is missing', () => {
  for (const [what, settings] of Object.entries({
    'subscriptions with bigqueryConfig': { bigqueryConfig: { table: 'a.b.c' } },
    'subscriptions with cloudStorageConfig': { cloudStorageConfig: { bucket: 'b' } },
    'subscriptions with bigtableConfig': { bigtableConfig: { table: 'a' } },
    'message transforms': { messageTransforms: [{ disabled: true }] },
    'x-goog-version v1beta1 of push': { pushConfig: { pushEndpoint: 'http://127.0.0.1:9/', attributes: { 'x-goog-version': 'v1beta1' } } },
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
});
