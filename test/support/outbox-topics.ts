import { type Message, PubSub, type Subscription } from '@google-cloud/pubsub';
import { afterAll, onTestFinished } from 'vitest';
import type { Time } from '../../src/emulator/time.ts';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { Publisher } from '../../src/shared/ports.ts';
import type { Databases } from './databases.ts';
import { draft, sequencing } from './sequencing.ts';

/** Number and key of a message, as its subscriber got it. */
export type Received = { readonly seq: number; readonly key: string; readonly data: string; readonly messageId: string };

/** Publishers and relays over real clients of both services, and what a subscriber gets. */
export function outboxTopics(databases: Databases<Time>) {
  let topics = 0;
  const clients: PubSub[] = [];
  afterAll(() => Promise.all(clients.map((client) => client.close())));

  return async (options: { readonly enableMessageOrdering?: boolean } = {}) => {
    const parts = sequencing(databases, system);
    const { emulator } = databases;
    const pubsub = new PubSub({ projectId: 'ptk-outbox-cases', apiEndpoint: emulator.pubsub.address });
    clients.push(pubsub);
    const topic = `orders-${++topics}`;
    await pubsub.createTopic(topic);
    const [subscription] = await pubsub.topic(topic).createSubscription(topic, options);
    const publisher = pubsubPublisher(pubsub);
    const received: Received[] = [];
    listen(subscription, (message) => {
      const { attributes, data, id } = message;
      received.push({ seq: Number(attributes['ptk-seq']), key: attributes['ptk-key'] ?? '', data: `${data}`, messageId: id });
      message.ack();
    });
    const { sequencer, relay, ...rest } = parts;
    return {
      ...rest,
      topic,
      publisher,
      received,
      seqs: () => received.map(({ seq }) => seq),
      draft: (key: string, more: Parameters<typeof draft>[1] = {}) => draft(key, { topic, ...more }),
      sequencer: (more: Parameters<typeof sequencer>[0] = {}) => sequencer({ publisher, ...more }),
      relay: (more: Parameters<typeof relay>[0] = {}) => relay({ publisher, ...more }),
    };
  };
}

function listen(subscription: Subscription, onMessage: (message: Message) => void): void {
  subscription.on('message', onMessage);
  onTestFinished(() => subscription.close());
}

/** Fails the calls whose places, from 1, are given; the others go through. */
export function failing(publisher: Publisher, ...calls: readonly number[]): Publisher {
  let call = 0;
  return {
    async publish(...args) {
      if (calls.includes(++call)) throw new Error('the call failed');
      return publisher.publish(...args);
    },
  };
}
