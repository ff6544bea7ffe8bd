import type { RequestListener } from 'node:http';
import type { Server } from '@grpc/grpc-js';
import { addService, type CallParts, readProtos, serviceOf, unary } from '../grpc.ts';
import { createIdentity, type Identity } from '../oidc.ts';
import type { BacklogMessage } from './backlog.ts';
import type { StaleAnswer } from './exactly-once.ts';
import { publisherMethods } from './publisher-methods.ts';
import { createRest } from './rest.ts';
import type { SubscriptionSettings } from './settings.ts';
import { snapshotMethods } from './snapshot-methods.ts';
import { createState, inspected } from './state.ts';
import { openStream, type PullStream, streamsEnded } from './streaming.ts';
import { subscriberMethods } from './subscriber-methods.ts';
import type { TopicSettings } from './topics.ts';

export type { BacklogMessage, SubscriptionSettings, TopicSettings };

export type PubsubEmulator = {
  register(server: Server): void;
  /** What is asked over plain HTTP under /v1. */
  readonly rest: RequestListener;
  close(): void;
  topics(): readonly TopicSettings[];
  subscriptions(): readonly SubscriptionSettings[];
  /** How many messages are without an ack, of one subscription or of all. */
  backlog(subscription?: string): number;
  /** The messages of a subscription that are without an ack, in the order of publishing. */
  messages(subscription: string): readonly BacklogMessage[];
  /** The subscription of each open StreamingPull. */
  openStreams(): readonly string[];
  /** Ends every open stream with UNAVAILABLE, as the service does now and then; clients open new ones. */
  endStreams(): void;
  /** Everything is gone as on a fresh start, and open streams end. */
  reset(): void;
};

export type PubsubOptions = CallParts & {
  /**
   * How an ordered subscription that is pulled hands out a key: several messages at once in order, as the service does (`batch`,
   * the default), or each after the ack of the one before (`strict`).
   */
  readonly ordering?: 'batch' | 'strict';
  /** How a request with stale ack ids is answered under exactly-once delivery; `faithful` by default, as the service does. */
  readonly exactlyOnce?: StaleAnswer;
  /** Signs the tokens of pushes and knows those of who publishes; one of its own when absent. */
  readonly identity?: Identity;
};

/** google.pubsub.v1.Publisher and Subscriber. */
export function createPubsubEmulator({ ordering = 'batch', exactlyOnce = 'faithful', ...options }: PubsubOptions): PubsubEmulator {
  const parts = { ...options, identity: options.identity ?? createIdentity(options.time) };
  const state = createState({ ...parts, keyBatch: ordering === 'strict' ? 1 : Number.POSITIVE_INFINITY });
  const { subscriptions } = state;
  const publisher = publisherMethods(state);
  const pullable = (name: string) => {
    const found = state.find(name);
    found.checkPull();
    return found;
  };
  const served = (service: string, methods: object) =>
    Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, unary(`${service}.${name}`, parts, method)]));

  return {
    register(server) {
      const protos = readProtos('@google-cloud/pubsub', 'protos.json');
      const StreamingPull = (call: PullStream) => openStream(call, { ...parts, find: pullable });
      const subscriber = { ...subscriberMethods(state, parts.time, exactlyOnce), ...snapshotMethods(state) };
      addService(server, serviceOf(protos, 'google.pubsub.v1.Publisher'), served('Publisher', publisher));
      addService(server, serviceOf(protos, 'google.pubsub.v1.Subscriber'), { ...served('Subscriber', subscriber), StreamingPull });
    },
    rest: createRest({ ...parts, publish: publisher.Publish }),
    close: state.close,
    topics: () => state.topics.list(),
    subscriptions: () => [...subscriptions.values()].map(({ settings }) => settings()),
    backlog(name) {
      if (name !== undefined) return inspected(state, name).backlog.size();
      return [...subscriptions.values()].reduce((sum, { backlog }) => sum + backlog.size(), 0);
    },
    messages: (name) => inspected(state, name).backlog.messages(),
    openStreams: () =>
      [...subscriptions].flatMap(([name, { calls }]) => [...calls].filter(({ kind }) => kind === 'stream').map(() => name)),
    endStreams() {
      for (const { endCalls } of subscriptions.values()) endCalls(streamsEnded);
    },
    reset: state.reset,
  };
}
