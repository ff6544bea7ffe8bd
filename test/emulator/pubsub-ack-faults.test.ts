import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { pushEndpoint } from './pubsub-endpoint.ts';
import { textsOf, worker } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

const { backlog, faults, stop, target, time } = await embeddedPubsub(manualTime());
afterAll(stop);
beforeEach(() => faults.replace([]));

describe('Pub/Sub faults: acks', () => {
  for (const enableExactlyOnceDelivery of [false, true]) {
    test(
      `a dropped ack is answered with OK, and the message comes again after its deadline (exactly once: ${enableExactlyOnceDelivery})`,
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw, { enableExactlyOnceDelivery });
        await raw.publish(topic, ['1']);
        faults.add({ kind: 'drop-ack', times: 1 });
        expect(await codeOf(raw.acknowledge(subscription, await raw.pull(subscription)))).toBe('OK');
        await time.advance(9_999);
        expect(await raw.pull(subscription)).toEqual([]);
        await time.advance(1);
        await raw.acknowledge(subscription, await raw.pull(subscription));
        expect(backlog(subscription)).toBe(0);
      }),
    );

    test(
      `a refused ack comes too late for its lease, and the message comes again at once (exactly once: ${enableExactlyOnceDelivery})`,
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw, { enableExactlyOnceDelivery });
        await raw.publish(topic, ['1']);
        const received = await raw.pull(subscription);
        faults.add({ kind: 'refuse-ack', times: 1 });
        const code = enableExactlyOnceDelivery ? 'INVALID_ARGUMENT' : 'OK';
        for (const _ of [1, 2]) expect(await codeOf(raw.acknowledge(subscription, received))).toBe(code);
        await raw.acknowledge(subscription, await raw.pull(subscription));
        expect(backlog(subscription)).toBe(0);
      }),
    );
  }

  test(
    'a refused ack counts as a failed delivery',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { deadLetterPolicy: { deadLetterTopic: await raw.createTopic('dead') } });
      await raw.publish(topic, ['1']);
      faults.add({ kind: 'refuse-ack', times: 1 });
      await raw.acknowledge(subscription, await raw.pull(subscription));
      expect((await raw.pull(subscription))[0]?.deliveryAttempt).toBe(2);
    }),
  );

  test(
    'after an ack that counted a message comes once more, as the same attempt, and then no more',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { deadLetterPolicy: { deadLetterTopic: await raw.createTopic('dead') } });
      const [id] = await raw.publish(topic, ['1']);
      faults.add({ kind: 'redeliver-after-ack' });
      await raw.acknowledge(subscription, await raw.pull(subscription));
      const [again, ...more] = await raw.pull(subscription);
      expect([again?.message.messageId, again?.deliveryAttempt, more.length]).toEqual([id, 1, 0]);
      if (again) await raw.acknowledge(subscription, [again]);
      expect(backlog(subscription)).toBe(0);
    }),
  );

  test(
    'a message of a key that comes again after its ack takes the later ones with it, so that the order holds',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { enableMessageOrdering: true });
      await raw.publish(topic, ['1', '2', '3'], 'k');
      const received = await raw.pull(subscription);
      await raw.acknowledge(subscription, received.slice(2));
      faults.add({ kind: 'redeliver-after-ack', times: 1 });
      await raw.acknowledge(subscription, received.slice(1, 2));
      await raw.acknowledge(subscription, received.slice(0, 1));
      expect(textsOf(await raw.pull(subscription))).toEqual(['2', '3']);
    }),
  );

  test(
    'no message comes again after its ack under exactly-once delivery',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { enableExactlyOnceDelivery: true });
      await raw.publish(topic, ['1']);
      faults.add({ kind: 'redeliver-after-ack' });
      await raw.acknowledge(subscription, await raw.pull(subscription));
      expect(backlog(subscription)).toBe(0);
      expect(faults.counts()['redeliver-after-ack']).toBe(2);
    }),
  );

  test(
    'a push whose answer is lost comes again, as after a nack',
    withRawPubsub(target, async (raw) => {
      const endpoint = await pushEndpoint(204);
      const { topic, subscription } = await worker(raw, { pushConfig: { pushEndpoint: endpoint.url } });
      faults.add({ kind: 'lost-push-answer', times: 1 });
      await raw.publish(topic, ['1']);
      await expect.poll(() => backlog(subscription)).toBe(0);
      expect(endpoint.texts).toEqual(['1', '1']);
      endpoint.close();
    }),
  );
});

describe('Pub/Sub faults: streams', () => {
  test(
    'a stream ends with UNAVAILABLE instead of sending messages, which come again after their deadline',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      const stream = raw.stream(subscription);
      await expect.poll(() => stream.answers.length).toBe(1);
      faults.add({ kind: 'close-stream', rpc: 'Subscriber.StreamingPull', times: 1 });
      await raw.publish(topic, ['1']);
      expect(await stream.ended).toBe('UNAVAILABLE');
      expect(stream.received).toEqual([]);
      const next = raw.stream(subscription);
      await expect.poll(() => next.answers.length).toBe(1);
      await time.advance(9_999);
      expect(next.received).toEqual([]);
      await time.advance(1);
      expect(textsOf(await next.count(1))).toEqual(['1']);
      next.cancel();
    }),
  );

  test(
    'a stream that ends instead of its first answer takes no messages',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      faults.add({ kind: 'close-stream', times: 1 });
      expect(await raw.stream(subscription).ended).toBe('UNAVAILABLE');
      await raw.publish(topic, ['1']);
      expect(textsOf(await raw.pull(subscription))).toEqual(['1']);
    }),
  );

  test(
    'a stream that is not opened ends with UNAVAILABLE, and takes no messages',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      faults.add({ kind: 'fail-before', rpc: 'Subscriber.StreamingPull', times: 1 });
      expect(await raw.stream(subscription).ended).toBe('UNAVAILABLE');
      await raw.publish(topic, ['1']);
      expect(textsOf(await raw.pull(subscription))).toEqual(['1']);
    }),
  );

  test(
    'a stream that opens slowly does what was asked of it meanwhile, in order',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      await raw.publish(topic, ['1']);
      const [held] = await raw.pull(subscription);
      faults.add({ kind: 'slow-call', rpc: 'Subscriber.StreamingPull', times: 1, delayMs: 5_000 });
      const stream = raw.stream(subscription);
      stream.write({ ackIds: [held?.ackId ?? ''] });
      await expect.poll(() => faults.counts()['slow-call']).toBe(1);
      await time.advance(4_999);
      expect([stream.answers.length, backlog(subscription)]).toEqual([0, 1]);
      await time.advance(1);
      await expect.poll(() => backlog(subscription)).toBe(0);
      expect(stream.answers).toHaveLength(1);
      stream.cancel();
    }),
  );
});
