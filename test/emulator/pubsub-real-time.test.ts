import { AckError, type Message } from '@google-cloud/pubsub';
import { afterAll, describe, expect, vi } from 'vitest';
import { statement } from '../support/targets.ts';
import { type RawPubsub, rawPubsub, textsOf, worker } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, pubsubTargets, withPubsub, withRawPubsub } from './pubsub-targets.ts';

/** What other files show in manual time, here on any emulator: with real waits, which is why they run all at once. */
const embedded = await embeddedPubsub();
afterAll(embedded.stop);

const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });
const exactlyOnce = { enableExactlyOnceDelivery: true };
const noRetryPolicy = { differs: 'applies no retry policy to a pull' };

/** Pulls until something comes. */
const pullSome = (raw: RawPubsub, subscription: string) =>
  vi.waitFor(
    async () => {
      const received = await raw.pull(subscription);
      expect(received).not.toEqual([]);
      return received;
    },
    { timeout: 15_000, interval: 20 },
  );

async function msOf(call: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await call();
  return performance.now() - startedAtMs;
}

for (const target of pubsubTargets(embedded)) {
  // No `expect.poll` in concurrent tests: it would take another's for its own.
  describe.concurrent(`Pub/Sub in real time: ${target.name}`, () => {
    for (const { number, title, ackDeadlineSeconds } of [
      { number: 29, title: 'the deadline of a stream wins over that of the subscription', ackDeadlineSeconds: 60 },
      { number: 32, title: 'an unacked message comes again after the deadline and not before', ackDeadlineSeconds: 10 },
    ]) {
      statement(
        target,
        number,
        title,
        withRawPubsub(target, async (raw) => {
          const { topic, subscription } = await worker(raw, { ackDeadlineSeconds });
          const stream = raw.stream(subscription, { streamAckDeadlineSeconds: 10 });
          await raw.publish(topic, ['1']);
          await stream.count(1);
          const tookMs = await msOf(() => stream.count(2));
          stream.cancel();
          expect(tookMs).toBeGreaterThan(9_500);
          expect(tookMs).toBeLessThan(13_000);
        }),
      );
    }

    statement(
      target,
      36,
      'under a retry policy of 1 s to 4 s a nacked message stays away for 1 s, then for 2 s',
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw, { retryPolicy: { minimumBackoff: seconds(1), maximumBackoff: seconds(4) } });
        await raw.publish(topic, ['1']);
        let received = await pullSome(raw, subscription);
        for (const gapMs of [1_000, 2_000]) {
          await raw.modifyDeadline(subscription, received, 0);
          const tookMs = await msOf(async () => {
            received = await pullSome(raw, subscription);
          });
          expect(tookMs).toBeGreaterThan(gapMs - 100);
          expect(tookMs).toBeLessThan(gapMs + 900);
        }
      }),
      noRetryPolicy,
    );

    statement(
      target,
      46,
      'other keys and messages without a key come while one key waits out its back-off',
      withRawPubsub(target, async (raw) => {
        const retryPolicy = { minimumBackoff: seconds(2), maximumBackoff: seconds(2) };
        const { topic, subscription } = await worker(raw, { enableMessageOrdering: true, retryPolicy });
        await raw.publish(topic, ['k1', 'k2'], 'k');
        await raw.modifyDeadline(subscription, await raw.pull(subscription, 1), 0);
        await raw.publish(topic, ['l1'], 'l');
        await raw.publish(topic, ['free']);
        expect(textsOf(await raw.pull(subscription)).sort()).toEqual(['free', 'l1']);
        expect(textsOf(await pullSome(raw, subscription))).toEqual(['k1', 'k2']);
      }),
      noRetryPolicy,
    );

    statement(
      target,
      48,
      'the ack of a delivery that was overtaken by another is INVALID',
      withPubsub(target, async (pubsub) => {
        const [topic] = await pubsub.createTopic('orders');
        const [subscription] = await topic.createSubscription('worker', exactlyOnce);
        const received: Message[] = [];
        subscription.on('message', (message) => received.push(message));
        await topic.publishMessage({ data: Buffer.from('a') });
        await vi.waitFor(() => expect(received.length).toBe(1), { timeout: 5_000 });
        const raw = rawPubsub(target, pubsub.projectId);
        await raw.call('ModifyAckDeadline', { subscription: subscription.name, ackIds: [received[0]?.ackId], ackDeadlineSeconds: 0 });
        raw.close();
        await vi.waitFor(() => expect(received.length).toBe(2), { timeout: 10_000 });
        const refused = await received[0]?.ackWithResponse().catch((error: unknown) => error);
        expect(refused instanceof AckError ? refused.errorCode : refused).toBe('INVALID');
      }),
    );

    statement(
      target,
      49,
      'of a mixed request the bad id is refused and the good one applied',
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw, exactlyOnce);
        await raw.publish(topic, ['1', '2']);
        const received = await raw.pull(subscription);
        await raw.modifyDeadline(subscription, received.slice(0, 1), 0);
        expect(await codeOf(raw.acknowledge(subscription, received))).toBe('INVALID_ARGUMENT');
        expect(textsOf(await pullSome(raw, subscription))).toEqual(textsOf(received.slice(0, 1)));
      }),
    );

    statement(
      target,
      50,
      'an id is of no more use once its deadline is over',
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw, exactlyOnce);
        await raw.publish(topic, ['1']);
        const received = await raw.pull(subscription);
        await raw.modifyDeadline(subscription, received, 1);
        await pullSome(raw, subscription);
        expect(await codeOf(raw.acknowledge(subscription, received))).toBe('INVALID_ARGUMENT');
      }),
    );

    statement(
      target,
      52,
      'a subscription gets what its filter lets through',
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw, { filter: 'attributes.kind = "order"' });
        const kinds = ['order', 'other'];
        await raw.call('Publish', { topic, messages: kinds.map((kind) => ({ data: Buffer.from(kind), attributes: { kind } })) });
        expect(textsOf(await pullSome(raw, subscription))).toEqual(['order']);
      }),
      { differs: 'applies no filter' },
    );

    statement(
      target,
      52,
      'a subscription with a bad filter is not made',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        expect(await codeOf(raw.createSubscription('worker', topic, { filter: 'kind = order' }))).toBe('INVALID_ARGUMENT');
      }),
      { differs: 'takes any filter' },
    );
  });
}
