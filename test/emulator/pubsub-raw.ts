import grpc from '@grpc/grpc-js';
import { readProtos, serviceOf } from '../../src/emulator/grpc.ts';
import type { PubsubMessage } from '../../src/emulator/pubsub/messages.ts';
import type { SubscriptionSettings } from '../../src/emulator/pubsub/settings.ts';
import type { StreamingPullRequest } from '../../src/emulator/pubsub/streaming.ts';
import type { Target } from '../support/targets.ts';

export type RawReceived = { readonly ackId: string; readonly message: PubsubMessage; readonly deliveryAttempt: number };
type SubscriptionProperties = { readonly exactlyOnceDeliveryEnabled: boolean; readonly messageOrderingEnabled: boolean };

/** What the answers of several calls hold. */
export type RawAnswer = Partial<SubscriptionSettings> & {
  readonly messageIds?: readonly string[];
  readonly receivedMessages?: readonly RawReceived[];
  readonly subscriptionProperties?: SubscriptionProperties | null;
};

/** An open StreamingPull. */
export type RawStream = {
  readonly answers: readonly RawAnswer[];
  readonly received: readonly RawReceived[];
  write(request: Partial<StreamingPullRequest>): void;
  /** All that came so far, once it is so many. */
  count(messages: number): Promise<readonly RawReceived[]>;
  /** The name of the code that ended it. */
  readonly ended: Promise<string | undefined>;
  /** Closes the client's side alone. */
  end(): void;
  cancel(): void;
};

export type RawPubsub = {
  readonly project: string;
  /** One request on the wire, tried once, and given up after `deadlineMs` where given. */
  call(method: string, request: object, deadlineMs?: number): Promise<RawAnswer>;
  createTopic(id: string): Promise<string>;
  createSubscription(id: string, topic: string, settings?: object): Promise<string>;
  /** Publishes texts, of one ordering key if one is given. */
  publish(topic: string, texts: readonly string[], orderingKey?: string): Promise<readonly string[]>;
  /** What is available at this moment. */
  pull(subscription: string, maxMessages?: number): Promise<readonly RawReceived[]>;
  acknowledge(subscription: string, received: readonly RawReceived[]): Promise<unknown>;
  /** Zero seconds nack. */
  modifyDeadline(subscription: string, received: readonly RawReceived[], ackDeadlineSeconds: number): Promise<unknown>;
  stream(subscription: string, settings?: Partial<StreamingPullRequest>): RawStream;
  close(): void;
};

const protos = readProtos('@google-cloud/pubsub', 'protos.json');
/** The methods of both services, which share no name. */
export const definitions: grpc.ServiceDefinition = {
  ...serviceOf(protos, 'google.pubsub.v1.Publisher'),
  ...serviceOf(protos, 'google.pubsub.v1.Subscriber'),
};
const RawClient = grpc.makeGenericClientConstructor(definitions, 'Pubsub');

export const textOf = ({ message }: RawReceived) => message.data.toString();
export const textsOf = (received: readonly RawReceived[]) => received.map(textOf);
const ackIdsOf = (received: readonly RawReceived[]) => received.map(({ ackId }) => ackId);

export function rawPubsub(target: Target, projectId: string): RawPubsub {
  const client = new RawClient(target.address, grpc.credentials.createInsecure());
  const project = `projects/${projectId}`;
  const call = (method: string, request: object, deadlineMs = Number.POSITIVE_INFINITY) => callOnce(client, method, request, deadlineMs);
  return {
    project,
    call,
    async createTopic(id) {
      const name = `${project}/topics/${id}`;
      await call('CreateTopic', { name });
      return name;
    },
    async createSubscription(id, topic, settings = {}) {
      const name = `${project}/subscriptions/${id}`;
      await call('CreateSubscription', { name, topic, ...settings });
      return name;
    },
    async publish(topic, texts, orderingKey = '') {
      const messages = texts.map((text) => ({ data: Buffer.from(text), orderingKey }));
      const { messageIds = [] } = await call('Publish', { topic, messages });
      return messageIds;
    },
    async pull(subscription, maxMessages = 1_000) {
      const { receivedMessages = [] } = await call('Pull', { subscription, maxMessages, returnImmediately: true });
      return receivedMessages;
    },
    acknowledge: (subscription, received) => call('Acknowledge', { subscription, ackIds: ackIdsOf(received) }),
    modifyDeadline: (subscription, received, ackDeadlineSeconds) =>
      call('ModifyAckDeadline', { subscription, ackIds: ackIdsOf(received), ackDeadlineSeconds }),
    stream: (subscription, settings = {}) => openStream(client, { subscription, streamAckDeadlineSeconds: 10, ...settings }),
    close: () => client.close(),
  };
}

/** A topic and a subscription of it. */
export async function worker(raw: RawPubsub, settings: object = {}): Promise<{ topic: string; subscription: string }> {
  const topic = await raw.createTopic('orders');
  return { topic, subscription: await raw.createSubscription('worker', topic, settings) };
}

function callOnce(client: grpc.Client, name: string, request: object, deadlineMs: number): Promise<RawAnswer> {
  const method = definitions[name];
  if (!method) throw new Error(`the protos hold no method ${name}`);
  return new Promise((resolve, reject) => {
    const { path, requestSerialize, responseDeserialize } = method;
    const options = { deadline: Date.now() + deadlineMs };
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, new grpc.Metadata(), options, (error, answer) =>
      error ? reject(error) : resolve(answer as RawAnswer),
    );
  });
}

function openStream(client: grpc.Client, first: Partial<StreamingPullRequest>): RawStream {
  const method = definitions.StreamingPull;
  if (!method) throw new Error('the protos hold no StreamingPull');
  const stream = client.makeBidiStreamRequest(method.path, method.requestSerialize, method.responseDeserialize);
  const answers: RawAnswer[] = [];
  const received: RawReceived[] = [];
  const waiting = new Set<() => void>();
  stream.on('data', (answer: RawAnswer) => {
    answers.push(answer);
    received.push(...(answer.receivedMessages ?? []));
    for (const look of waiting) look();
  });
  // The code comes with `status`; without a listener the error would end the test run.
  stream.on('error', () => undefined);
  const ended = new Promise<string | undefined>((resolve) => {
    stream.on('status', ({ code }: grpc.StatusObject) => resolve(grpc.status[code]));
  });
  stream.write(first);
  return {
    answers,
    received,
    ended,
    write: (request) => void stream.write(request),
    count: (messages) =>
      new Promise((resolve) => {
        const look = () => {
          if (received.length < messages) return;
          waiting.delete(look);
          resolve(received);
        };
        waiting.add(look);
        look();
      }),
    end: () => void stream.end(),
    cancel: () => stream.cancel(),
  };
}
