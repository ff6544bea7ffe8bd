import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ManualTime, manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { type RawPubsub, rawPubsub } from './pubsub-raw.ts';
import { embeddedPubsub } from './pubsub-targets.ts';

type Push = { readonly message: Record<string, unknown>; readonly subscription: string; readonly deliveryAttempt?: number };

const embedded = await embeddedPubsub<ManualTime>(manualTime());
const { target, time } = embedded;
let endpoint: Server;
let url = '';
let raw: RawPubsub;
let pushes: Push[] = [];
/** Status by number of push; 0 gives no answer. */
let answer: (push: number) => number = () => 204;
let project = 0;

beforeAll(async () => {
  endpoint = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    pushes.push(JSON.parse(Buffer.concat(chunks).toString()));
    const status = answer(pushes.length);
    if (status === 102) return response.writeProcessing();
    if (status !== 0) response.writeHead(status, status === 301 ? { location: '/elsewhere' } : {}).end();
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  const address = endpoint.address();
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
});
beforeEach(() => {
  raw = rawPubsub(target, `push-${project++}`);
  pushes = [];
  answer = () => 204;
  return () => raw.close();
});
afterAll(async () => {
  await embedded.stop();
  endpoint.closeAllConnections();
  endpoint.close();
});

async function pushed(settings: object = {}): Promise<{ topic: string; subscription: string }> {
  const topic = await raw.createTopic('orders');
  const subscription = await raw.createSubscription('pusher', topic, { pushConfig: { pushEndpoint: url }, ...settings });
  return { topic, subscription };
}

const retryPolicy = { minimumBackoff: { seconds: 10 }, maximumBackoff: { seconds: 10 } };

describe('Pub/Sub push', () => {
  statement(
    target,
    53,
    'the body has both spellings of id and time, the ordering key, and the attempt only with a dead-letter policy',
    async () => {
      const deadLetterTopic = await raw.createTopic('dead');
      const { topic } = await pushed();
      await raw.createSubscription('counted', topic, { pushConfig: { pushEndpoint: url }, deadLetterPolicy: { deadLetterTopic } });
      await raw.call('Publish', { topic, messages: [{ data: Buffer.from('hello'), attributes: { own: 'x' }, orderingKey: 'k' }] });
      await expect.poll(() => pushes.length).toBe(2);
      const [counted, plain] = [...pushes].sort((a, b) => (a.subscription < b.subscription ? -1 : 1));
      const message = {
        data: 'aGVsbG8=',
        attributes: { own: 'x' },
        orderingKey: 'k',
        messageId: expect.stringMatching(/^\d+$/),
        message_id: plain?.message.messageId,
        publishTime: '2026-01-01T00:00:00.000Z',
        publish_time: '2026-01-01T00:00:00.000Z',
      };
      expect(plain).toEqual({ message, subscription: `${raw.project}/subscriptions/pusher` });
      expect(counted).toEqual({ message, subscription: `${raw.project}/subscriptions/counted`, deliveryAttempt: 1 });
    },
  );

  for (const status of [102, 200, 201, 202, 204]) {
    statement(target, 53, `${status} is an ack`, async () => {
      answer = () => status;
      const { topic, subscription } = await pushed({ retryPolicy });
      await raw.publish(topic, ['a']);
      await expect.poll(() => embedded.backlog(subscription)).toBe(0);
      expect(pushes).toHaveLength(1);
    });
  }

  for (const status of [203, 301, 400, 404, 409, 429, 500, 503]) {
    statement(target, 53, `${status} is a nack, and the message comes again after its back-off`, async () => {
      answer = (push) => (push === 1 ? status : 204);
      const { topic, subscription } = await pushed({ retryPolicy });
      await raw.publish(topic, ['a']);
      await expect.poll(() => pushes.length).toBe(1);
      await time.advance(9_999);
      expect(pushes).toHaveLength(1);
      expect(embedded.backlog(subscription)).toBe(1);
      await time.advance(1);
      await expect.poll(() => embedded.backlog(subscription)).toBe(0);
      expect(pushes).toHaveLength(2);
    });
  }

  statement(target, 53, 'no answer within the ack deadline is a nack', async () => {
    answer = (push) => (push === 1 ? 0 : 204);
    const { topic, subscription } = await pushed({ ackDeadlineSeconds: 10 });
    await raw.publish(topic, ['a']);
    await expect.poll(() => pushes.length).toBe(1);
    await time.advance(9_999);
    expect(pushes).toHaveLength(1);
    await time.advance(1);
    await expect.poll(() => embedded.backlog(subscription)).toBe(0);
    expect(pushes).toHaveLength(2);
  });

  statement(target, 53, 'an ordered key has one push under way, other keys have theirs', async () => {
    answer = () => 0;
    const { topic } = await pushed({ enableMessageOrdering: true });
    await raw.publish(topic, ['a1', 'a2'], 'a');
    await raw.publish(topic, ['b1'], 'b');
    await expect.poll(() => pushes.length).toBe(2);
    expect(pushes.map(({ message }) => Buffer.from(String(message.data), 'base64').toString()).sort()).toEqual(['a1', 'b1']);
  });

  test('an endpoint that refuses everything gets ten in a row, then one after each pause', async () => {
    answer = () => 500;
    const { topic } = await pushed();
    await raw.publish(topic, ['a']);
    await expect.poll(() => pushes.length).toBe(10);
    await time.advance(99);
    expect(pushes).toHaveLength(10);
    await time.advance(1);
    await expect.poll(() => pushes.length).toBe(11);
    await time.advance(199);
    expect(pushes).toHaveLength(11);
    await time.advance(1);
    await expect.poll(() => pushes.length).toBe(12);
  });
});
