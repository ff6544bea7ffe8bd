import { afterAll, beforeEach, describe, expect } from 'vitest';
import { statement } from '../support/targets.ts';
import { textsOf } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, pubsubTargets, withPubsub, withRawPubsub } from './pubsub-targets.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);
const { faults } = embedded;
beforeEach(() => faults.replace([]));

const texts = (count: number) => Array.from({ length: count }, (_, index) => String(index));
const attributes = (count: number) => Object.fromEntries(texts(count).map((name) => [name, '']));

const accepted = { differs: 'takes attributes of any number and length' };

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub publishing: ${target.name}`, () => {
    statement(
      target,
      13,
      'each message of a request gets an id, in the order of the request',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        const ids = await raw.publish(topic, texts(50));
        const received = (await raw.pull(subscription)).map(({ message }) => [message.messageId, message.data.toString()]);
        expect(Object.fromEntries(received)).toEqual(Object.fromEntries(ids.map((id, index) => [id, String(index)])));
      }),
    );

    statement(
      target,
      13,
      'message ids are unique over 100,000 messages',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const batch = texts(1_000);
        const ids = new Set<string>();
        for (let request = 0; request < 100; request++) for (const id of await raw.publish(topic, batch)) ids.add(id);
        expect(ids.size).toBe(100_000);
      }),
    );

    statement(
      target,
      13,
      'publish times are near now and never go back within a key',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic, { enableMessageOrdering: true });
        const earliestMs = Date.now() - 1_000;
        for (const text of texts(20)) await raw.publish(topic, [text], 'k');
        const times = (await raw.pull(subscription)).map(
          ({ message }) => Number(message.publishTime.seconds) * 1_000 + message.publishTime.nanos / 1_000_000,
        );
        expect(times).toEqual(times.toSorted((a, b) => a - b));
        expect(times[0]).toBeGreaterThan(earliestMs);
        expect(times.at(-1)).toBeLessThan(Date.now() + 1_000);
      }),
    );

    statement(
      target,
      14,
      'an id or a time that the publisher gives is not taken',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        const messages = [{ data: Buffer.from('a'), messageId: 'mine', publishTime: { seconds: '1', nanos: 0 } }];
        const { messageIds } = await raw.call('Publish', { topic, messages });
        const [received] = await raw.pull(subscription);
        expect(received?.message.messageId).toBe(messageIds?.[0]);
        expect(received?.message.messageId).not.toBe('mine');
        expect(received?.message.publishTime.seconds).not.toBe('1');
      }),
    );

    for (const { what, messages, google } of [
      { what: '1,001 messages', messages: texts(1_001).map((text) => ({ data: Buffer.from(text) })), google: undefined },
      { what: '101 attributes', messages: [{ attributes: attributes(101) }], google: accepted },
      { what: 'an attribute name of 257 bytes', messages: [{ attributes: { [`é${'a'.repeat(255)}`]: '' } }], google: accepted },
      { what: 'an attribute value of 1,025 bytes', messages: [{ attributes: { a: `é${'a'.repeat(1_023)}` } }], google: accepted },
      { what: 'an empty message', messages: [{}], google: undefined },
    ]) {
      statement(
        target,
        15,
        `refuses ${what}`,
        withRawPubsub(target, async (raw) => {
          const topic = await raw.createTopic('orders');
          const subscription = await raw.createSubscription('worker', topic);
          const good = { data: Buffer.from('good') };
          expect(await codeOf(raw.call('Publish', { topic, messages: [good, ...messages] }))).toBe('INVALID_ARGUMENT');
          expect(await raw.pull(subscription)).toEqual([]);
        }),
        google,
      );
    }

    statement(
      target,
      15,
      'takes as much as is allowed',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const messages = [
          ...texts(999).map((text) => ({ data: Buffer.from(text) })),
          { attributes: { ...attributes(99), [`é${'a'.repeat(254)}`]: `é${'a'.repeat(1_022)}` } },
        ];
        expect((await raw.call('Publish', { topic, messages })).messageIds).toHaveLength(1_000);
      }),
    );

    statement(
      target,
      16,
      'a publish to a topic that is missing is refused at once',
      withPubsub(target, async (pubsub) => {
        expect(await codeOf(pubsub.topic('missing').publishMessage({ data: Buffer.from('a') }))).toBe('NOT_FOUND');
        const [topic] = await pubsub.topic('missing').get({ autoCreate: true });
        const [subscription] = await topic.createSubscription('worker');
        const id = await topic.publishMessage({ data: Buffer.from('b') });
        const first = new Promise((resolve) => subscription.once('message', resolve));
        expect(await first).toMatchObject({ id });
      }),
    );

    for (const [kind, count] of [['fail-before', 1] as const, ['answer-lost', 2] as const]) {
      statement(
        target,
        17,
        `after ${kind} the client tries again, which makes ${count} of one message`,
        withPubsub(target, async (pubsub) => {
          const [topic] = await pubsub.createTopic('orders');
          const [subscription] = await topic.createSubscription('worker');
          faults.add({ kind, rpc: 'Publisher.Publish', resource: topic.name, times: 1 });
          const id = await topic.publishMessage({ data: Buffer.from('a') });
          expect(embedded.backlog(subscription.name)).toBe(count);
          const ids: string[] = [];
          const all = new Promise<void>((resolve) =>
            subscription.on('message', (message) => {
              message.ack();
              if (ids.push(message.id) === count) resolve();
            }),
          );
          await all;
          expect(new Set(ids).size).toBe(count);
          expect(ids).toContain(id);
        }),
        { notApplicable: 'it has no faults' },
      );
    }

    statement(
      target,
      18,
      'one request holds messages of one ordering key',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const subscription = await raw.createSubscription('worker', topic);
        const data = Buffer.from('a');
        const publish = (...keys: string[]) => raw.call('Publish', { topic, messages: keys.map((orderingKey) => ({ data, orderingKey })) });
        expect(await codeOf(publish('k', 'l'))).toBe('INVALID_ARGUMENT');
        expect(await codeOf(publish('k', ''))).toBe('INVALID_ARGUMENT');
        expect(await raw.pull(subscription)).toEqual([]);
        expect(await codeOf(publish('k', 'k'))).toBe('OK');
      }),
      { differs: 'takes mixed keys' },
    );

    statement(
      target,
      19,
      'each subscription gets its own copy of what is published after it was made',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const first = await raw.createSubscription('first', topic);
        await raw.publish(topic, ['1']);
        const second = await raw.createSubscription('second', topic);
        await raw.publish(topic, ['2']);
        const received = await raw.pull(first);
        expect(textsOf(received).sort()).toEqual(['1', '2']);
        await raw.acknowledge(first, received);
        expect(textsOf(await raw.pull(second))).toEqual(['2']);
      }),
    );
  });
}
