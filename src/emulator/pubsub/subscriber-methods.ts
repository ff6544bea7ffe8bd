import type { ServerUnaryCall } from '@grpc/grpc-js';
import { alreadyExists, invalidArgument } from '../grpc.ts';
import type { Time } from '../time.ts';
import { type StaleAnswer, staleAckIds } from './exactly-once.ts';
import { checkName, checkProject, type Mask, type Paging, page, projectOf } from './names.ts';
import { pull } from './pull.ts';
import { checkMade } from './serials.ts';
import { normalized, type PushConfig, type SubscriptionSettings, updated } from './settings.ts';
import type { PubsubState } from './state.ts';
import { checkedSeconds } from './streaming.ts';
import type { Subscription } from './subscription.ts';

type Named = { readonly subscription: string };
type AckIds = Named & { readonly ackIds: readonly string[] };

/** A pull without a message is answered in time for the client's own deadline. */
const pullWaitMs = 10_000;
const ackRequestBytes = 524_288;

/** The methods of google.pubsub.v1.Subscriber but for StreamingPull and those about snapshots, named as on the wire. */
export function subscriberMethods(
  { topics, subscriptions, find, subscribe, unsubscribe }: PubsubState,
  time: Time,
  staleAnswer: StaleAnswer,
) {
  const shown = (settings: SubscriptionSettings) => ({ ...settings, topicMessageRetentionDuration: topics.retention(settings.topic) });
  const checkDeadLetterTopic = ({ deadLetterPolicy }: SubscriptionSettings) => {
    if (deadLetterPolicy) topics.get(deadLetterPolicy.deadLetterTopic);
  };
  const answerTo = ({ settings }: Subscription, stale: readonly string[]) => {
    if (settings().enableExactlyOnceDelivery && stale.length > 0) throw staleAckIds(stale, staleAnswer);
    return {};
  };
  return {
    CreateSubscription: (asked: SubscriptionSettings) => {
      checkName('subscriptions', asked.name);
      topics.get(asked.topic);
      const settings = normalized(asked);
      checkDeadLetterTopic(settings);
      if (subscriptions.has(asked.name)) throw alreadyExists(`subscription ${asked.name} exists`);
      subscribe(settings);
      return shown(settings);
    },
    GetSubscription: ({ subscription }: Named) => shown(find(subscription).settings()),
    UpdateSubscription: ({ subscription, updateMask }: { subscription: SubscriptionSettings | null } & Mask) => {
      if (!subscription) throw invalidArgument('subscription is missing');
      const found = find(subscription.name);
      const next = updated(found.settings(), subscription, updateMask?.paths ?? []);
      if (updateMask?.paths.includes('dead_letter_policy')) checkDeadLetterTopic(next);
      found.change(next);
      return shown(next);
    },
    ListSubscriptions: ({ project, ...paging }: { project: string } & Paging) => {
      const all = [...subscriptions.values()]
        .map(({ settings }) => shown(settings()))
        .filter(({ name }) => projectOf(name) === checkProject(project));
      const { items, nextPageToken } = page(all, paging);
      return { subscriptions: items, nextPageToken };
    },
    DeleteSubscription: ({ subscription }: Named) => {
      find(subscription);
      unsubscribe(subscription);
      return {};
    },
    ModifyPushConfig: ({ subscription, pushConfig }: Named & { pushConfig: PushConfig | null }) => {
      const { settings, change } = find(subscription);
      change(updated(settings(), { ...settings(), pushConfig }, ['push_config']));
      return {};
    },
    Pull: async (
      { subscription, maxMessages, returnImmediately }: Named & { maxMessages: number; returnImmediately: boolean },
      call: ServerUnaryCall<unknown, unknown>,
    ) => {
      if (maxMessages <= 0) throw invalidArgument(`max_messages is ${maxMessages}; it must be above 0`);
      const source = find(subscription);
      source.checkPull();
      const cancelled = new AbortController();
      call.on('cancelled', () => cancelled.abort());
      const waitMs = returnImmediately ? 0 : pullWaitMs;
      return { receivedMessages: await pull(source, time, { most: maxMessages, waitMs, cancelled: cancelled.signal }) };
    },
    Acknowledge: ({ subscription, ackIds }: AckIds) => {
      const found = find(subscription);
      checkAckIds(found, ackIds);
      return answerTo(
        found,
        ackIds.filter((ackId) => !found.backlog.acknowledge(ackId)),
      );
    },
    ModifyAckDeadline: ({ subscription, ackIds, ackDeadlineSeconds }: AckIds & { ackDeadlineSeconds: number }) => {
      const found = find(subscription);
      checkAckIds(found, ackIds);
      const ms = checkedSeconds('ack_deadline_seconds', ackDeadlineSeconds) * 1_000;
      return answerTo(
        found,
        ackIds.filter((ackId) => !found.backlog.modifyDeadline(ackId, ms)),
      );
    },
  };
}

function checkAckIds({ settings }: Subscription, ackIds: readonly string[]): void {
  if (ackIds.length === 0) throw invalidArgument('ack_ids is empty');
  const bytes = ackIds.reduce((sum, ackId) => sum + Buffer.byteLength(ackId), 0);
  if (bytes > ackRequestBytes) throw invalidArgument(`ack_ids takes ${bytes} bytes; at most ${ackRequestBytes} are allowed`);
  // Under exactly-once delivery the answer names it among the stale ones.
  if (!settings().enableExactlyOnceDelivery) checkMade('ack_ids', ackIds);
}
