import { createServer } from 'node:http';
import { afterAll, describe, expect } from 'vitest';
import { statement } from '../support/targets.ts';
import type { RawPubsub } from './pubsub-raw.ts';
import { embeddedPubsub, pubsubTargets, withRawPubsub } from './pubsub-targets.ts';

type Push = { readonly message: Readonly<Record<string, unknown>>; readonly subscription: string };

/** What other files show in manual time, here on any emulator. */
const embedded = await embeddedPubsub();
const pushes: Push[] = [];
const textOf = ({ message }: Push) => Buffer.from(String(message.data), 'base64').toString();
const pushed = (text: string) => pushes.filter((push) => textOf(push) === text).length;

/** Answers a message with the status that it is named by the first time, and with 204 after that. */
const endpoint = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const push: Push = JSON.parse(Buffer.concat(chunks).toString());
  pushes.push(push);
  const status = pushed(textOf(push)) === 1 ? Number(textOf(push).split(' ')[1]) : 204;
  response.writeHead(status).end();
});
await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
const address = endpoint.address();
const pushEndpoint = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
afterAll(async () => {
  await embedded.stop();
  endpoint.closeAllConnections();
  endpoint.close();
});

async function pusher(raw: RawPubsub, settings: object = {}): Promise<string> {
  const topic = await raw.createTopic('orders');
  const retryPolicy = { minimumBackoff: { nanos: 100_000_000 }, maximumBackoff: { nanos: 100_000_000 } };
  await raw.createSubscription('pusher', topic, { pushConfig: { pushEndpoint }, retryPolicy, ...settings });
  return topic;
}

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub push in real time: ${target.name}`, () => {
    statement(
      target,
      53,
      'the body has both spellings of id and time, and the ordering key',
      withRawPubsub(target, async (raw) => {
        const topic = await pusher(raw, { enableMessageOrdering: true });
        const data = Buffer.from(`${target.name} 204`);
        await raw.call('Publish', { topic, messages: [{ data, attributes: { own: 'x' }, orderingKey: 'k' }] });
        await expect.poll(() => pushed(data.toString())).toBe(1);
        const push = pushes.find((other) => textOf(other) === data.toString());
        const { messageId, publishTime } = push?.message ?? {};
        expect(push).toEqual({
          message: {
            ...{ data: data.toString('base64'), attributes: { own: 'x' }, orderingKey: 'k' },
            ...{ messageId, message_id: messageId, publishTime, publish_time: publishTime },
          },
          subscription: `${raw.project}/subscriptions/pusher`,
        });
        expect(messageId).toMatch(/^\d+$/);
      }),
      { differs: 'leaves the ordering key out of a push' },
    );

    for (const { statuses, google } of [
      { statuses: [200, 201, 204], google: undefined },
      { statuses: [202], google: { differs: 'takes a push answered with 202 for a nack' } },
    ]) {
      statement(
        target,
        53,
        `${statuses.join(', ')} ack`,
        withRawPubsub(target, async (raw) => {
          const topic = await pusher(raw);
          const texts = statuses.map((status) => `${target.name}-ack ${status}`);
          await raw.publish(topic, texts);
          await expect.poll(() => texts.map(pushed)).toEqual(texts.map(() => 1));
          // By the time this one came again, each of the others would have.
          const later = `${target.name}-after-${statuses} 500`;
          await raw.publish(topic, [later]);
          await expect.poll(() => pushed(later), { timeout: 3_000 }).toBe(2);
          expect(texts.map(pushed)).toEqual(texts.map(() => 1));
        }),
        google,
      );
    }

    for (const { statuses, google } of [
      { statuses: [301, 400, 404, 409, 429, 500, 503], google: undefined },
      { statuses: [203], google: { differs: 'takes a push answered with 203 for an ack' } },
    ]) {
      statement(
        target,
        53,
        `${statuses.join(', ')} nack`,
        withRawPubsub(target, async (raw) => {
          const topic = await pusher(raw);
          const texts = statuses.map((status) => `${target.name}-nack ${status}`);
          await raw.publish(topic, texts);
          await expect.poll(() => texts.map(pushed), { timeout: 3_000 }).toEqual(texts.map(() => 2));
        }),
        google,
      );
    }
  });
}
