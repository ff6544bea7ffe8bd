import { type CallParts, notFound } from '../grpc.ts';
import type { Identity } from '../oidc.ts';
import type { PubsubMessage } from './messages.ts';
import { checkName } from './names.ts';
import { createSerials } from './serials.ts';
import type { SubscriptionSettings } from './settings.ts';
import { createSnapshots, type Snapshots } from './snapshots.ts';
import { streamsEnded } from './streaming.ts';
import { createSubscription, noSubscription, type Subscription } from './subscription.ts';
import { createTopics, type Topics } from './topics.ts';

/** All that the service holds. */
export type PubsubState = {
  readonly topics: Topics;
  readonly subscriptions: ReadonlyMap<string, Subscription>;
  readonly snapshots: Snapshots;
  /** A use, which keeps the subscription from expiring. @throws NOT_FOUND */
  find(subscription: string): Subscription;
  subscribe(settings: SubscriptionSettings): void;
  unsubscribe(subscription: string): void;
  /** As on a fresh start, but that no id comes again. */
  reset(): void;
  close(): void;
};

export type StateParts = CallParts & { readonly identity: Identity; readonly keyBatch: number };

/** Reads back what the journal holds. */
export function createState(parts: StateParts): PubsubState {
  const { time, journal } = parts;
  const kind = 'pubsub/subscriptions';
  const subscriptions = new Map<string, Subscription>();
  const serials = createSerials(journal);
  const deliver = (topic: string, message: PubsubMessage) => {
    for (const subscription of subscriptions.values()) subscription.offer(topic, message);
    snapshots.offer(topic, message);
  };
  const topics = createTopics({ time, journal, serials, deliver });
  const snapshots = createSnapshots(time, journal);

  const unsubscribe = (name: string) => {
    const subscription = subscriptions.get(name);
    subscription?.close(noSubscription(name));
    subscription?.backlog.clear();
    subscriptions.delete(name);
    journal.delete(kind, name);
  };
  const subscribe = (initial: SubscriptionSettings) => {
    const { name } = initial;
    const subscription = createSubscription(initial, {
      ...parts,
      serials,
      publishDead: (topic, { message }, attributes) => topics.forward(topic, { ...message, attributes }),
      topicRetention: topics.retention,
      expired: unsubscribe,
    });
    const note = () => journal.put(kind, name, subscription.settings());
    note();
    subscriptions.set(name, {
      ...subscription,
      change(next) {
        subscription.change(next);
        note();
      },
    });
  };
  for (const [, settings] of journal.load<SubscriptionSettings>(kind)) subscribe(settings);

  return {
    topics,
    subscriptions,
    snapshots,
    find(name) {
      const found = subscriptions.get(checkName('subscriptions', name));
      if (!found) throw noSubscription(name);
      found.touch();
      return found;
    },
    subscribe,
    unsubscribe,
    reset() {
      for (const [name, { endCalls }] of [...subscriptions]) {
        endCalls(streamsEnded);
        unsubscribe(name);
      }
      for (const { name } of topics.list()) topics.delete(name);
      snapshots.clear();
    },
    close() {
      for (const { close } of subscriptions.values()) close(streamsEnded);
      subscriptions.clear();
      snapshots.close();
    },
  };
}

/** @throws NOT_FOUND, for inspection, which is no use of the subscription */
export function inspected({ subscriptions }: PubsubState, name: string): Subscription {
  const found = subscriptions.get(name);
  if (!found) throw notFound(`subscription ${name} does not exist`);
  return found;
}
