import type { Message, PubSub, Subscription } from '@google-cloud/pubsub';
import { afterAll, describe, expect } from 'vitest';
import { type Exception, statement } from '../support/targets.ts';
import { rawPubsub, textsOf } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, pubsubTargets, withPubsub } from './pubsub-targets.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);

const hourMs = 3_600_000;
const fromNow = (ms: number) => new Date(Date.now() + ms);

/** The next so many messages of a subscription, each acked, in the order of their texts. */
async function ackNext(subscription: Subscription, count: number): Promise<string[]> {
  const received: Message[] = [];
  await new Promise<void>((resolve) =>
    subscription.on('message', (message) => {
      message.ack();
      if (received.push(message) === count) resolve();
    }),
  );
  subscription.removeAllListeners('message');
  await subscription.close();
  return received.map(({ data }) => data.toString()).sort();
}

async function withMessages(pubsub: PubSub, texts: readonly string[], settings: object = {}): Promise<Subscription> {
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription('worker', settings);
  for (const text of texts) await topic.publishMessage({ data: Buffer.from(text) });
  return subscription;
}

for (const target of pubsubTargets(embedded)) {
  /** What can be had of a subscription now, without the client. */
  const there = async (pubsub: PubSub, subscription: Subscription) => {
    const raw = rawPubsub(target, pubsub.projectId);
    const received = await raw.pull(subscription.name);
    raw.close();
    return textsOf(received);
  };
  const statementHere = (number: number, title: string, run: (pubsub: PubSub) => Promise<void>, google?: Exception) =>
    statement(target, number, title, withPubsub(target, run), google);

  describe(`Pub/Sub seek: ${target.name}`, () => {
    statementHere(41, 'a seek to the future takes all messages for acked', async (pubsub) => {
      const subscription = await withMessages(pubsub, ['1', '2']);
      await subscription.seek(fromNow(hourMs));
      expect(await there(pubsub, subscription)).toEqual([]);
    });

    statementHere(41, 'a seek to the past brings acked messages again where they are retained', async (pubsub) => {
      const subscription = await withMessages(pubsub, ['1', '2'], { retainAckedMessages: true });
      expect(await ackNext(subscription, 2)).toEqual(['1', '2']);
      const again = pubsub.subscription('worker');
      await again.seek(fromNow(-hourMs));
      expect(await ackNext(again, 2)).toEqual(['1', '2']);
    });

    statementHere(41, 'a seek to the past brings only the unacked again where acked ones are not retained', async (pubsub) => {
      const subscription = await withMessages(pubsub, ['1', '2']);
      const raw = rawPubsub(target, pubsub.projectId);
      const received = await raw.pull(subscription.name);
      await raw.acknowledge(subscription.name, received.slice(0, 1));
      raw.close();
      await subscription.seek(fromNow(-hourMs));
      expect(await there(pubsub, subscription)).toEqual(textsOf(received.slice(1)));
    });

    statementHere(42, 'a seek to a snapshot restores what was acked and what was not, and what came later is unacked', async (pubsub) => {
      const subscription = await withMessages(pubsub, ['acked', 'held']);
      const raw = rawPubsub(target, pubsub.projectId);
      const received = await raw.pull(subscription.name);
      await raw.acknowledge(
        subscription.name,
        received.filter(({ message }) => message.data.toString() === 'acked'),
      );
      raw.close();
      await subscription.createSnapshot('half');
      await pubsub.topic('orders').publishMessage({ data: Buffer.from('later') });
      await subscription.seek(fromNow(hourMs));
      expect(await there(pubsub, subscription)).toEqual([]);
      await subscription.seek('half');
      expect((await there(pubsub, subscription)).sort()).toEqual(['held', 'later']);
    });

    statementHere(42, 'a snapshot of another topic is rejected', async (pubsub) => {
      const subscription = await withMessages(pubsub, []);
      const [other] = await pubsub.createTopic('other');
      const [stranger] = await other.createSubscription('stranger');
      await subscription.createSnapshot('mine');
      expect(await codeOf(stranger.seek('mine'))).toBe('FAILED_PRECONDITION');
    });
  });
}
