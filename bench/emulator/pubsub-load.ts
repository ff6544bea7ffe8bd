import { type Encoder, encodedFields, encoderOf, fieldBytes, type RawClient, rawClient } from './raw-client.ts';

export type PubsubLoad = {
  /** Publishes, receives and acks for a while; how many messages a second came to their ack. */
  run(durationMs: number): Promise<number>;
  /** The same for so many messages. */
  pass(messages: number): Promise<void>;
  close(): void;
};

const batch = 100;
const mostOutstanding = 5_000;
/** As many as the Node client opens; Google's emulator gives each some 2,000 messages a second at most. */
const streams = 5;
const ackDelayMs = 5;
const publisher = '/google.pubsub.v1.Publisher';
const subscriber = '/google.pubsub.v1.Subscriber';

/** One topic, one subscription, StreamingPull; Publish and Acknowledge take 100 messages a call. */
export async function openPubsubLoad(address: string, payloadBytes: number): Promise<PubsubLoad> {
  const client = rawClient(address);
  const encode = encoderOf('@google-cloud/pubsub', 'protos.json');
  const { publishBatch, subscription } = await createTopic(client, encode, payloadBytes);
  let published = 0;
  let acked = 0;
  let most = 0;
  let publishing = 0;
  let ackIds: Uint8Array[] = [];
  let ackTimer: NodeJS.Timeout | undefined;
  let failed: (error: unknown) => void = () => {};
  let progressed = () => {};

  const publish = () => {
    while (published < most && published - acked + batch <= mostOutstanding && publishing < 16) {
      published += batch;
      publishing += 1;
      publishBatch().then(() => {
        publishing -= 1;
        publish();
      }, failed);
    }
  };
  const ack = () => {
    clearTimeout(ackTimer);
    ackTimer = undefined;
    const ids = ackIds;
    ackIds = [];
    const request = Buffer.concat([encodedFields(1, [Buffer.from(subscription)]), encodedFields(2, ids)]);
    client.unary(`${subscriber}/Acknowledge`, request).then(() => {
      acked += ids.length;
      publish();
      progressed();
    }, failed);
  };
  const receive = (answer: Buffer) => {
    for (const received of fieldBytes(answer, 1)) {
      ackIds.push(...fieldBytes(received, 1));
      if (ackIds.length >= batch) ack();
    }
    if (ackIds.length > 0) ackTimer ??= setTimeout(ack, ackDelayMs);
  };
  const opening = encode('google.pubsub.v1.StreamingPullRequest', { subscription, streamAckDeadlineSeconds: 60 });
  const opened = Array.from({ length: streams }, () => {
    const stream = client.bidiStream(`${subscriber}/StreamingPull`);
    stream.on('data', receive).on('error', (error) => failed(error));
    stream.write(opening);
    return stream;
  });

  /** Runs until `isDone`, then until nothing is outstanding. */
  const until = (isDone: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      failed = reject;
      progressed = () => {
        if (isDone()) most = published;
        if (acked >= most) resolve();
      };
      publish();
    });
  return {
    async run(durationMs) {
      const startMs = performance.now();
      const before = acked;
      most = Number.POSITIVE_INFINITY;
      await until(() => performance.now() - startMs >= durationMs);
      return ((acked - before) * 1_000) / (performance.now() - startMs);
    },
    async pass(messages) {
      most = published + messages;
      await until(() => false);
    },
    close() {
      failed = () => {};
      for (const stream of opened) stream.cancel();
      client.close();
    },
  };
}

/** Leaves so many messages without an ack. */
export async function fillBacklog(address: string, messages: number, payloadBytes: number): Promise<void> {
  const client = rawClient(address);
  const { publishBatch } = await createTopic(client, encoderOf('@google-cloud/pubsub', 'protos.json'), payloadBytes);
  for (let left = messages; left > 0; left -= batch) await publishBatch();
  client.close();
}

let topics = 0;

async function createTopic(client: RawClient, encode: Encoder, payloadBytes: number) {
  const topic = `projects/bench/topics/load-${++topics}`;
  const subscription = `projects/bench/subscriptions/load-${topics}`;
  await client.unary(`${publisher}/CreateTopic`, encode('google.pubsub.v1.Topic', { name: topic }));
  await client.unary(
    `${subscriber}/CreateSubscription`,
    encode('google.pubsub.v1.Subscription', { name: subscription, topic, ackDeadlineSeconds: 60 }),
  );
  const messages = Array.from({ length: batch }, () => ({ data: Buffer.alloc(payloadBytes, 'x') }));
  const request = encode('google.pubsub.v1.PublishRequest', { topic, messages });
  return { subscription, publishBatch: () => client.unary(`${publisher}/Publish`, request) };
}
