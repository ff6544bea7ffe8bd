import type { Server, ServerUnaryCall } from '@grpc/grpc-js';
import type { Faults } from '../faults.ts';
import { addService, alreadyExists, invalidArgument, notFound, readProtos, serviceOf, unary } from '../grpc.ts';
import type { Time } from '../time.ts';
import type { Item } from './backlog.ts';
import { staleAckIds } from './exactly-once.ts';
import type { PubsubMessage } from './messages.ts';
import { checkName, checkProject, page, projectOf } from './names.ts';
import { normalized, type PushConfig, type SubscriptionSettings, updated } from './settings.ts';
import { checkedSeconds, openStream, type PullStream, streamsEnded } from './streaming.ts';
import { createSubscription, noSubscription, type Subscription } from './subscription.ts';
import { createTopics, type TopicSettings } from './topics.ts';

export type PubsubEmulator = {
  register(server: Server): void;
  close(): void;
  /** Messages without an ack, of one subscription or of all. */
  backlog(subscription?: string): number;
  /** Ends every open stream with UNAVAILABLE, as the service does now and then; clients open new ones. */
  endStreams(): void;
};

export type PubsubOptions = {
  readonly time: Time;
  readonly faults: Faults;
  /**
   * How an ordered subscription that is pulled hands out a key: several messages at once in order, as the service does (`batch`,
   * the default), or each after the ack of the one before (`strict`).
   */
  readonly ordering?: 'batch' | 'strict';
};

type Paging = { readonly pageSize: number; readonly pageToken: string };
type Mask = { readonly updateMask: { readonly paths: readonly string[] } | null };
type AckIds = { readonly subscription: string; readonly ackIds: readonly string[] };

const deletedTopic = '_deleted-topic_';
/** A pull without a message is answered in time for the client's own deadline. */
const pullWaitMs = 10_000;
const ackRequestBytes = 524_288;

export function createPubsubEmulator({ time, faults, ordering = 'batch' }: PubsubOptions): PubsubEmulator {
  const keyBatch = ordering === 'strict' ? 1 : Number.POSITIVE_INFINITY;
  const subscriptions = new Map<string, Subscription>();
  const deliver = (topic: string, message: PubsubMessage) => {
    for (const subscription of subscriptions.values()) subscription.offer(topic, message);
  };
  const topics = createTopics(time, deliver);
  const find = (name: string): Subscription => {
    const found = subscriptions.get(checkName('subscriptions', name));
    if (!found) throw noSubscription(name);
    return found;
  };
  const pullable = (name: string): Subscription => {
    const found = find(name);
    found.checkPull();
    return found;
  };
  const publishDead = (topic: string, { message }: Item, attributes: Record<string, string>) =>
    topics.forward(topic, { ...message, attributes });
  const checkDeadLetterTopic = ({ deadLetterPolicy }: SubscriptionSettings) => {
    if (deadLetterPolicy) topics.get(deadLetterPolicy.deadLetterTopic);
  };

  const publisher = {
    CreateTopic: (asked: TopicSettings) => topics.create(asked),
    GetTopic: ({ topic }: { topic: string }) => topics.get(topic),
    UpdateTopic: ({ topic, updateMask }: { topic: TopicSettings | null } & Mask) => {
      if (!topic) throw invalidArgument('topic is missing');
      return topics.update(topic, updateMask?.paths ?? []);
    },
    ListTopics: ({ project, ...paging }: { project: string } & Paging) => {
      const { items, nextPageToken } = page(topics.list(checkProject(project)), paging);
      return { topics: items, nextPageToken };
    },
    ListTopicSubscriptions: ({ topic, ...paging }: { topic: string } & Paging) => {
      topics.get(topic);
      const names = [...subscriptions.values()].filter(({ settings }) => settings().topic === topic).map(({ settings }) => settings().name);
      const { items, nextPageToken } = page(names, paging);
      return { subscriptions: items, nextPageToken };
    },
    DeleteTopic: ({ topic }: { topic: string }) => {
      topics.delete(topic);
      for (const { settings, change } of subscriptions.values())
        if (settings().topic === topic) change({ ...settings(), topic: deletedTopic });
      return {};
    },
    DetachSubscription: ({ subscription }: { subscription: string }) => {
      const { settings, change } = find(subscription);
      change({ ...settings(), detached: true });
      return {};
    },
    Publish: ({ topic, messages }: { topic: string; messages: readonly PubsubMessage[] }) => ({
      messageIds: topics.publish(topic, messages),
    }),
  };

  const subscriber = {
    CreateSubscription: (asked: SubscriptionSettings) => {
      checkName('subscriptions', asked.name);
      topics.get(asked.topic);
      const settings = normalized(asked);
      checkDeadLetterTopic(settings);
      if (subscriptions.has(asked.name)) throw alreadyExists(`subscription ${asked.name} exists`);
      subscriptions.set(asked.name, createSubscription(settings, { time, faults, keyBatch, publishDead }));
      return settings;
    },
    GetSubscription: ({ subscription }: { subscription: string }) => find(subscription).settings(),
    UpdateSubscription: ({ subscription, updateMask }: { subscription: SubscriptionSettings | null } & Mask) => {
      if (!subscription) throw invalidArgument('subscription is missing');
      const found = find(subscription.name);
      const next = updated(found.settings(), subscription, updateMask?.paths ?? []);
      if (updateMask?.paths.includes('dead_letter_policy')) checkDeadLetterTopic(next);
      found.change(next);
      return next;
    },
    ListSubscriptions: ({ project, ...paging }: { project: string } & Paging) => {
      const all = [...subscriptions.values()]
        .map(({ settings }) => settings())
        .filter(({ name }) => projectOf(name) === checkProject(project));
      const { items, nextPageToken } = page(all, paging);
      return { subscriptions: items, nextPageToken };
    },
    DeleteSubscription: ({ subscription }: { subscription: string }) => {
      find(subscription).end(noSubscription(subscription));
      subscriptions.delete(subscription);
      return {};
    },
    ModifyPushConfig: ({ subscription, pushConfig }: { subscription: string; pushConfig: PushConfig | null }) => {
      const { settings, change } = find(subscription);
      change(updated(settings(), { ...settings(), pushConfig }, ['push_config']));
      return {};
    },
    Pull: async (
      { subscription, maxMessages, returnImmediately }: { subscription: string; maxMessages: number; returnImmediately: boolean },
      call: ServerUnaryCall<unknown, unknown>,
    ) => {
      if (maxMessages <= 0) throw invalidArgument(`max_messages is ${maxMessages}; it must be above 0`);
      const cancelled = new AbortController();
      call.on('cancelled', () => cancelled.abort());
      return { receivedMessages: await pullable(subscription).pull(maxMessages, returnImmediately ? 0 : pullWaitMs, cancelled.signal) };
    },
    Acknowledge: ({ subscription, ackIds }: AckIds) => {
      const { backlog, settings } = find(subscription);
      checkAckIds(ackIds);
      const stale = ackIds.filter((ackId) => !backlog.acknowledge(ackId));
      if (settings().enableExactlyOnceDelivery && stale.length > 0) throw staleAckIds(stale);
      return {};
    },
    ModifyAckDeadline: ({ subscription, ackIds, ackDeadlineSeconds }: AckIds & { ackDeadlineSeconds: number }) => {
      const { backlog, settings } = find(subscription);
      checkAckIds(ackIds);
      const ms = checkedSeconds(ackDeadlineSeconds) * 1_000;
      const stale = ackIds.filter((ackId) => !backlog.modifyDeadline(ackId, ms));
      if (settings().enableExactlyOnceDelivery && stale.length > 0) throw staleAckIds(stale);
      return {};
    },
  };

  const served = (service: string, methods: object) =>
    Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, unary(`${service}.${name}`, faults, method)]));

  return {
    register(server) {
      const protos = readProtos('@google-cloud/pubsub', 'protos.json');
      const StreamingPull = (call: PullStream) => openStream(call, pullable);
      addService(server, serviceOf(protos, 'google.pubsub.v1.Publisher'), served('Publisher', publisher));
      addService(server, serviceOf(protos, 'google.pubsub.v1.Subscriber'), { ...served('Subscriber', subscriber), StreamingPull });
    },
    close() {
      for (const subscription of subscriptions.values()) subscription.end(streamsEnded);
      subscriptions.clear();
    },
    backlog(name) {
      if (name === undefined) return [...subscriptions.values()].reduce((sum, { backlog }) => sum + backlog.size(), 0);
      const found = subscriptions.get(name);
      if (!found) throw notFound(`subscription ${name} does not exist`);
      return found.backlog.size();
    },
    endStreams() {
      for (const subscription of subscriptions.values()) subscription.endStreams(streamsEnded);
    },
  };
}

function checkAckIds(ackIds: readonly string[]): void {
  if (ackIds.length === 0) throw invalidArgument('the request holds no ack ids');
  const bytes = ackIds.reduce((sum, ackId) => sum + Buffer.byteLength(ackId), 0);
  if (bytes > ackRequestBytes) throw invalidArgument(`the ack ids take ${bytes} bytes; at most ${ackRequestBytes} are allowed`);
}
