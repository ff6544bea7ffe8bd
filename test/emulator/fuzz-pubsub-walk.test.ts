import { afterAll, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { fuzzTimeoutMs } from './fuzz-service.ts';
import { picked, type Steps, walks } from './fuzz-walk.ts';
import { embeddedPubsub } from './pubsub-targets.ts';
import { wireService } from './wire-client.ts';

const time = manualTime();
const embedded = await embeddedPubsub(time);
afterAll(embedded.stop);
const { ask } = wireService('pubsub', embedded.target.address);

const topics = ['orders', 'dead'].map((id) => `projects/walk/topics/${id}`);
const subscriptions = ['plain', 'ordered', 'once', 'dying'].map((id) => `projects/walk/subscriptions/${id}`);
const snapshots = ['one', 'two'].map((id) => `projects/walk/snapshots/${id}`);
const settings = [
  {},
  { enableMessageOrdering: true },
  { enableExactlyOnceDelivery: true, retryPolicy: { minimumBackoff: { seconds: 1 } } },
  { deadLetterPolicy: { deadLetterTopic: topics[1] }, retainAckedMessages: true },
];
const spansMs = [1, 999, 10_000, 60_000, 600_000, 86_400_000, 32 * 86_400_000];
const createSubscription = (index: number) =>
  ask('CreateSubscription', { name: subscriptions[index], topic: topics[0], ...settings[index] });

/** The ack ids that came, of every subscription and age. */
const held: string[] = [];
type Received = { readonly receivedMessages: readonly { readonly ackId: string }[] };

const steps: Steps = {
  async publish([which, count, key]) {
    const messages = Array.from({ length: 1 + (count % 5) }, () => ({ data: Buffer.from('a'), orderingKey: picked(['', 'k', 'l'], key) }));
    return ask('Publish', { topic: picked(topics, which), messages });
  },
  async pull([which, count]) {
    const request = { subscription: picked(subscriptions, which), maxMessages: 1 + (count % 10), returnImmediately: true };
    const answer = await ask('Pull', request);
    for (const { receivedMessages } of answer.messages as readonly unknown[] as readonly Received[]) {
      held.push(...receivedMessages.map(({ ackId }) => ackId));
    }
    return answer;
  },
  acknowledge: async ([which, count]) =>
    held.length === 0
      ? undefined
      : ask('Acknowledge', { subscription: picked(subscriptions, which), ackIds: held.splice(0, 1 + (count % 5)) }),
  async modifyDeadline([which, count, seconds]) {
    if (held.length === 0) return undefined;
    const ackIds = held.slice(-1 - (count % 5));
    const ackDeadlineSeconds = picked([0, 0, 10, 600], seconds);
    return ask('ModifyAckDeadline', { subscription: picked(subscriptions, which), ackIds, ackDeadlineSeconds });
  },
  stream: ([which]) => ask('StreamingPull', { subscription: picked(subscriptions, which), streamAckDeadlineSeconds: 10 }),
  snapshot: ([which, name]) => ask('CreateSnapshot', { name: picked(snapshots, name), subscription: picked(subscriptions, which) }),
  seekToSnapshot: ([which, name]) => ask('Seek', { subscription: picked(subscriptions, which), snapshot: picked(snapshots, name) }),
  seekToTime: ([which, ago]) =>
    ask('Seek', {
      subscription: picked(subscriptions, which),
      time: { seconds: Math.floor((time.nowMs() - picked(spansMs, ago)) / 1_000) },
    }),
  deleteSnapshot: ([name]) => ask('DeleteSnapshot', { snapshot: picked(snapshots, name) }),
  update: ([which, seconds]) =>
    ask('UpdateSubscription', {
      subscription: { name: picked(subscriptions, which), ackDeadlineSeconds: picked([10, 60, 600], seconds) },
      updateMask: {
        paths: picked([['ack_deadline_seconds'], ['dead_letter_policy'], ['retry_policy'], ['enable_exactly_once_delivery']], seconds),
      },
    }),
  async recreateSubscription([which]) {
    await ask('DeleteSubscription', { subscription: picked(subscriptions, which) });
    return createSubscription(which % subscriptions.length);
  },
  async recreateTopic([which, again]) {
    if (again % 5 > 0) return undefined;
    await ask('DeleteTopic', { topic: picked(topics, which) });
    return ask('CreateTopic', { name: picked(topics, which) });
  },
  detach: ([which, again]) =>
    again % 10 > 0 ? Promise.resolve(undefined) : ask('DetachSubscription', { subscription: picked(subscriptions, which) }),
  async wait([span]) {
    await time.advance(picked(spansMs, span));
    return undefined;
  },
};

test('a walk of 300 calls to Pub/Sub meets no defect', { timeout: fuzzTimeoutMs }, () =>
  walks(steps, async () => {
    embedded.reset();
    held.length = 0;
    for (const name of topics) await ask('CreateTopic', { name });
    for (const index of subscriptions.keys()) await createSubscription(index);
  }),
);
