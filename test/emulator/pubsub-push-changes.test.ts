import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { type PushEndpoint, pushEndpoint } from './pubsub-endpoint.ts';
import { type RawPubsub, textsOf } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

const embedded = await embeddedPubsub(manualTime());
afterAll(embedded.stop);
const { target, time } = embedded;

const endpoints: PushEndpoint[] = [];
afterEach(() => {
  for (const endpoint of endpoints.splice(0)) endpoint.close();
});
async function endpointThatAnswers(status: number): Promise<PushEndpoint> {
  const endpoint = await pushEndpoint(status);
  endpoints.push(endpoint);
  return endpoint;
}

async function pushedTo(raw: RawPubsub, { url }: PushEndpoint, settings: object = {}): Promise<{ topic: string; subscription: string }> {
  const topic = await raw.createTopic('orders');
  return { topic, subscription: await raw.createSubscription('pusher', topic, { pushConfig: { pushEndpoint: url }, ...settings }) };
}

describe('Pub/Sub push: changes while messages wait', () => {
  test(
    'a new endpoint gets what is pushed from then on',
    withRawPubsub(target, async (raw) => {
      const [first, second] = [await endpointThatAnswers(204), await endpointThatAnswers(204)];
      const { topic, subscription } = await pushedTo(raw, first);
      await raw.publish(topic, ['1']);
      await expect.poll(() => embedded.backlog(subscription)).toBe(0);
      await raw.call('ModifyPushConfig', { subscription, pushConfig: { pushEndpoint: second.url } });
      await raw.publish(topic, ['2']);
      await expect.poll(() => embedded.backlog(subscription)).toBe(0);
      expect([first.texts, second.texts]).toEqual([['1'], ['2']]);
    }),
  );

  test(
    'without an endpoint a subscription is pulled, and what was under way comes after its deadline',
    withRawPubsub(target, async (raw) => {
      const endpoint = await endpointThatAnswers(0);
      const { topic, subscription } = await pushedTo(raw, endpoint);
      await raw.publish(topic, ['1']);
      await expect.poll(() => endpoint.texts).toEqual(['1']);
      expect(await codeOf(raw.pull(subscription))).toBe('FAILED_PRECONDITION');
      await raw.call('ModifyPushConfig', { subscription, pushConfig: {} });
      await raw.publish(topic, ['2']);
      expect(textsOf(await raw.pull(subscription))).toEqual(['2']);
      await time.advance(10_000);
      expect(textsOf(await raw.pull(subscription)).sort()).toEqual(['1', '2']);
      expect(endpoint.texts).toEqual(['1']);
    }),
  );

  test(
    'an endpoint takes over what waits in a subscription that was pulled, and its streams end',
    withRawPubsub(target, async (raw) => {
      const endpoint = await endpointThatAnswers(204);
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic);
      const stream = raw.stream(subscription, { maxOutstandingMessages: '1' });
      await raw.publish(topic, ['1', '2']);
      await stream.count(1);
      await raw.call('ModifyPushConfig', { subscription, pushConfig: { pushEndpoint: endpoint.url } });
      expect(await stream.ended).toBe('FAILED_PRECONDITION');
      await expect.poll(() => endpoint.texts).toEqual(['2']);
      await time.advance(10_000);
      await expect.poll(() => endpoint.texts).toEqual(['2', '1']);
    }),
  );

  test(
    'a message that its endpoint always refuses becomes a dead letter',
    withRawPubsub(target, async (raw) => {
      const endpoint = await endpointThatAnswers(500);
      const dead = await raw.createTopic('dead');
      const letters = await raw.createSubscription('letters', dead);
      const { topic, subscription } = await pushedTo(raw, endpoint, { deadLetterPolicy: { deadLetterTopic: dead } });
      await raw.publish(topic, ['1']);
      await expect.poll(() => embedded.backlog(letters)).toBe(1);
      expect(endpoint.texts).toEqual(Array(5).fill('1'));
      expect(embedded.backlog(subscription)).toBe(0);
    }),
  );

  test('the end of the emulator gives up the pushes under way', async () => {
    const endpoint = await endpointThatAnswers(0);
    const short = await embeddedPubsub();
    await withRawPubsub(short.target, async (raw) => {
      const { topic } = await pushedTo(raw, endpoint);
      await raw.publish(topic, ['1', '2']);
      await expect.poll(() => endpoint.texts.length).toBe(2);
    })();
    expect(endpoint.aborted()).toBe(0);
    await short.stop();
    await expect.poll(endpoint.aborted).toBe(2);
  });
});
