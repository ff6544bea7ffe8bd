import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkedSubscription, subscriptionOf } from '../../src/shared/transports/subscription.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { isOfficial } from '../support/official.ts';

let emulator: Backend;
let pubsub: PubSub;

beforeAll(async () => {
  emulator = await startBackend();
  pubsub = new PubSub({ projectId: 'ptk-facts', apiEndpoint: emulator.pubsub.address, emulatorMode: true });
});

afterAll(async () => {
  await pubsub.close();
  await emulator.close();
});

test('what a subscription says of itself is read', async () => {
  const [topic] = await pubsub.createTopic({ name: 'orders', messageRetentionDuration: { seconds: 1_209_600 } });
  const [dead] = await pubsub.createTopic('dead');
  const [subscription] = await topic.createSubscription('all', {
    ackDeadlineSeconds: 90,
    messageRetentionDuration: { seconds: 86_400 },
    retainAckedMessages: true,
    deadLetterPolicy: { deadLetterTopic: dead.name, maxDeliveryAttempts: 7 },
    retryPolicy: { minimumBackoff: { seconds: 1, nanos: 500_000_000 }, maximumBackoff: { seconds: 60 } },
    enableExactlyOnceDelivery: true,
    enableMessageOrdering: true,
  });
  expect(await subscriptionOf(subscription)).toEqual({
    ackDeadlineSeconds: 90,
    retentionSeconds: 86_400,
    // Google's emulator shows it on the topic alone.
    topicRetentionSeconds: isOfficial ? undefined : 1_209_600,
    retainAcked: true,
    maxDeliveryAttempts: 7,
    retryPolicy: { minimumSeconds: 1.5, maximumSeconds: 60 },
    exactlyOnce: true,
    ordering: true,
    isPush: false,
  });
});

test('a subscription that was given nothing has the defaults', async () => {
  const [topic] = await pubsub.createTopic('plain');
  const [pull] = await topic.createSubscription('plain');
  const [push] = await topic.createSubscription('pushed', { pushConfig: { pushEndpoint: 'http://127.0.0.1:9/' }, retryPolicy: {} });
  const plain = {
    ackDeadlineSeconds: 10,
    retentionSeconds: 604_800,
    topicRetentionSeconds: undefined,
    retainAcked: false,
    maxDeliveryAttempts: undefined,
    retryPolicy: undefined,
    exactlyOnce: false,
    ordering: false,
    isPush: false,
  };
  expect(await subscriptionOf(pull)).toEqual(plain);
  expect(await subscriptionOf(push)).toEqual({ ...plain, isPush: true, retryPolicy: { minimumSeconds: 10, maximumSeconds: 600 } });
});

test('one that is not there is warned about and does not hinder the start', async () => {
  const warned: object[] = [];
  const log = { ...silentLog, warn: (fields: object) => void warned.push(fields) };
  expect(await checkedSubscription(pubsub.subscription('missing'), { log })).toBeUndefined();
  expect(warned).toMatchObject([{ subscription: 'projects/ptk-facts/subscriptions/missing' }]);
});
