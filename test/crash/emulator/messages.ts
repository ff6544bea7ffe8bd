import { setTimeout as pause } from 'node:timers/promises';
import { encodedFields, encoderOf, fieldBytes, type RawClient, rawClient } from '../../../bench/emulator/raw-client.ts';
import { inLanes, type Part, textOf, untilKilled } from './part.ts';

const topic = 'projects/crash/topics/messages';
const subscription = 'projects/crash/subscriptions/messages';
const publisher = '/google.pubsub.v1.Publisher';
const subscriber = '/google.pubsub.v1.Subscriber';
const publishers = 4;
const mostPublished = 10;
/** The others stay in the backlog, through all kills to come. */
const ackedShare = 0.8;
/** After so long without a delivery there is none to come: the next process has every message available at once. */
const quietMs = 2_000;

type Received = { readonly ackId: Uint8Array; readonly messageId: string };

/** Publishes and acks; a confirmed ack is the answer of Acknowledge. */
export function messagesPart(random: () => number): Part {
  const encode = encoderOf('@google-cloud/pubsub', 'protos.json');
  const waiting = new Set<string>();
  const acked = new Set<string>();
  /** Their ack got no answer: they may come again or not. */
  const uncertain = new Set<string>();
  const repeated = new Set<string>();
  const requests = Array.from({ length: mostPublished }, (_, index) =>
    encode('google.pubsub.v1.PublishRequest', {
      topic,
      messages: Array.from({ length: index + 1 }, () => ({ data: Buffer.alloc(50, 'x') })),
    }),
  );

  const publish = async (client: RawClient) => {
    const request = requests[Math.floor(random() * mostPublished)] ?? Buffer.alloc(0);
    for (const id of fieldBytes(await client.unary(`${publisher}/Publish`, request), 1)) waiting.add(textOf(id));
  };
  const acknowledge = async (client: RawClient, received: readonly Received[]) => {
    if (received.length === 0) return;
    for (const { messageId } of received) uncertain.add(messageId);
    const ackIds = received.map(({ ackId }) => ackId);
    await client.unary(
      `${subscriber}/Acknowledge`,
      Buffer.concat([encodedFields(1, [Buffer.from(subscription)]), encodedFields(2, ackIds)]),
    );
    for (const { messageId } of received) {
      uncertain.delete(messageId);
      waiting.delete(messageId);
      acked.add(messageId);
    }
  };
  const receive = (client: RawClient, onReceived: (received: Received[]) => void) => {
    const stream = client.bidiStream(`${subscriber}/StreamingPull`);
    stream.on('error', () => {});
    stream.on('data', (answer: Buffer) => {
      const received = fieldBytes(answer, 1).map((one) => ({
        ackId: fieldBytes(one, 1)[0] ?? Buffer.alloc(0),
        messageId: textOf(fieldBytes(fieldBytes(one, 2)[0] ?? Buffer.alloc(0), 3)[0]),
      }));
      for (const { messageId } of received) if (acked.has(messageId)) repeated.add(messageId);
      onReceived(received);
    });
    stream.write(encode('google.pubsub.v1.StreamingPullRequest', { subscription, streamAckDeadlineSeconds: 60 }));
    return stream;
  };

  return {
    async prepare({ pubsub }) {
      const client = rawClient(pubsub);
      await client.unary(`${publisher}/CreateTopic`, encode('google.pubsub.v1.Topic', { name: topic }));
      await client.unary(`${subscriber}/CreateSubscription`, encode('google.pubsub.v1.Subscription', { name: subscription, topic }));
      client.close();
    },
    async load({ pubsub }, isKilled) {
      const client = rawClient(pubsub);
      let toAck: Received[] = [];
      const stream = receive(client, (received) => toAck.push(...received.filter(() => random() < ackedShare)));
      await Promise.all([
        inLanes(publishers, () => untilKilled(isKilled, () => publish(client))),
        untilKilled(isKilled, async () => {
          const batch = toAck;
          toAck = [];
          await (batch.length > 0 ? acknowledge(client, batch) : pause(1));
        }),
      ]);
      stream.cancel();
      client.close();
    },
    async check({ pubsub }) {
      const client = rawClient(pubsub);
      const came = new Map<string, Received>();
      let lastMs = performance.now();
      const stream = receive(client, (received) => {
        lastMs = performance.now();
        for (const one of received) came.set(one.messageId, one);
      });
      const confirmed = [...waiting].filter((id) => !uncertain.has(id));
      const ackedBefore = acked.size;
      const missing = () => confirmed.filter((id) => !came.has(id));
      while (performance.now() - lastMs < (missing().length > 0 ? quietMs : quietMs / 10)) await pause(20);
      const lost = missing();
      for (const id of lost) waiting.delete(id);
      for (const id of uncertain) {
        if (!came.has(id)) acked.add(id);
        if (!came.has(id)) waiting.delete(id);
      }
      uncertain.clear();
      await acknowledge(
        client,
        [...came.values()].filter(() => random() < ackedShare),
      );
      stream.cancel();
      client.close();
      const again = [...repeated];
      repeated.clear();
      return [
        { promise: 'a published message is delivered', confirmed: confirmed.length, lost, repeated: [] },
        { promise: 'an acked message stays away', confirmed: ackedBefore, lost: [], repeated: again },
      ];
    },
    close() {},
  };
}
