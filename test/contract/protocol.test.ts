import { PubSub } from '@google-cloud/pubsub';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { publisherByHand } from '../support/by-hand.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { listenTo } from '../support/received.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const clients: PubSub[] = [];
afterAll(() => Promise.all(clients.map((client) => client.close())));
let topics = 0;

/** A publisher without the toolkit, and the toolkit's publishers and relays beside it, each with clients of its own. */
async function setUp(stream = 's') {
  const parts = sequencing(databases, system);
  const pubsub = new PubSub({ projectId: 'ptk-protocol', apiEndpoint: databases.emulator.pubsub.address });
  clients.push(pubsub);
  const topic = `orders-${++topics}`;
  await pubsub.createTopic(topic);
  const inbox = await listenTo(pubsub, topic);
  onTestFinished(() => inbox.close());
  const publisher = pubsubPublisher(pubsub);
  const hand = publisherByHand(parts.client(), stream, topic);
  const { publish } = parts.sequencer({ publisher });
  return {
    hand,
    inbox,
    /** By hand: S4. */
    send: (key: string, attributes: Record<string, string>) =>
      pubsub.topic(topic).publishMessage({ data: Buffer.from(`body of ${key}`), attributes }),
    publish: (key: string) => publish(draft(key, { stream, topic })),
    relay: parts.relay({ publisher }),
    /** Number and key of what came to the topic, in its order. */
    received: async (count: number) =>
      (await inbox.count(count)).map(({ attributes, data }) => `${attributes['ptk-seq']} ${attributes['ptk-key']}: ${data}`),
  };
}

const due = 0;
const later = 600_000;

describe('a publisher by hand', () => {
  test('leaves numbers that the relay publishes as they stand in their entries, and not those that it marked', async () => {
    const { hand, send, relay, received, inbox } = await setUp('order/17.a_b');
    const [first] = await hand.number(['k1', 'k2', 'k3'], due);
    await hand.markPublished('k1', await send('k1', first?.attributes ?? {}));
    expect(await relay()).toEqual({ streams: 1, published: 2, failed: 0, dead: 0 });
    expect((await received(3)).sort()).toEqual(['1 k1: body of k1', '2 k2: body of k2', '3 k3: body of k3']);
    const attributes = inbox.messages.map((message) => message.attributes);
    const shared = {
      'ptk-stream': 'order/17.a_b',
      'ptk-epoch': `${first?.epoch}`,
      'ptk-origin-time': first?.attributes['ptk-origin-time'],
    };
    expect(attributes).toContainEqual({ ...shared, 'ptk-key': 'k2', 'ptk-seq': '2' });
    const messageId = inbox.messages.find((message) => message.attributes['ptk-seq'] === '2')?.id;
    expect(await hand.entry('k2')).toMatchObject({ state: 'published', message: null, messageId, epoch: first?.epoch, seq: 2 });
    expect(await hand.entry('k2')).not.toHaveProperty('nextAttemptAt');
    expect(await relay()).toMatchObject({ published: 0 });
  });

  test('keeps the relay away until what it has handed over is due', async () => {
    const { hand, relay } = await setUp();
    await hand.number(['k1'], later);
    expect(await relay()).toMatchObject({ streams: 0, published: 0 });
    expect(await hand.entry('k1')).toMatchObject({ state: 'pending' });
  });

  test('begins a stream that the toolkit continues, in one epoch, with one number for a key', async () => {
    const { hand, send, publish, received } = await setUp();
    const [first] = await hand.number(['k1', 'k2'], later);
    const messageId = await send('k1', first?.attributes ?? {});
    await hand.markPublished('k1', messageId);
    const epoch = first?.epoch;
    expect(await publish('k3')).toMatchObject({ epoch, sequence: 3 });
    expect(await publish('k1')).toEqual({ key: 'k1', epoch, sequence: 1, messageId });
    expect(await publish('k2')).toEqual({ key: 'k2', epoch, sequence: 2 });
    expect((await received(2)).sort()).toEqual(['1 k1: body of k1', '3 k3: k3']);
  });

  test('continues a stream that the toolkit has numbered, and gets its number for its key', async () => {
    const { hand, publish, relay, received } = await setUp();
    const { epoch } = await publish('k1');
    expect(await hand.number(['k1', 'k2', 'k3'], due)).toMatchObject([
      { key: 'k1', epoch, seq: 1 },
      { key: 'k2', epoch, seq: 2 },
      { key: 'k3', epoch, seq: 3 },
    ]);
    expect(await publish('k4')).toMatchObject({ epoch, sequence: 4 });
    expect(await relay()).toMatchObject({ published: 2 });
    expect((await received(4)).sort()).toEqual(['1 k1: k1', '2 k2: body of k2', '3 k3: body of k3', '4 k4: k4']);
  });

  test('beside the toolkit, both at once, leaves no gap and gives no number twice', async () => {
    const { hand, publish, relay, received } = await setUp();
    const byHand = async () => {
      for (const n of upTo(20)) await hand.number([`hand-${n}`], due);
    };
    const byToolkit = async () => {
      for (const n of upTo(20)) await publish(`toolkit-${n}`);
    };
    await Promise.all([byHand(), byToolkit()]);
    expect(await relay()).toMatchObject({ published: 20 });
    const numbers = (await received(40)).map((text) => Number(text.split(' ')[0]));
    expect(numbers.sort((a, b) => a - b)).toEqual(upTo(40));
    expect(await hand.counter()).toMatchObject({ next: 41 });
  });
});
