import type { Faults } from '../faults.ts';
import { failedPrecondition, notFound, type RpcError } from '../grpc.ts';
import type { Time } from '../time.ts';
import { type Backlog, type Consumer, createBacklog, type Delivery, type Item } from './backlog.ts';
import { deadLetterAttributes } from './dead-letter.ts';
import { parseFilter } from './filter.ts';
import type { PubsubMessage } from './messages.ts';
import { startPush } from './push.ts';
import type { SubscriptionSettings } from './settings.ts';
import type { StreamSubscription } from './streaming.ts';

export type Subscription = {
  readonly backlog: Backlog;
  /** The ends of what waits for messages, streams and pulls. */
  readonly streams: Set<(error: RpcError) => void>;
  /** How many messages of one ordering key a stream or a pull may have at once. */
  readonly keyBatch: number;
  readonly settings: () => SubscriptionSettings;
  /** Takes a message of its topic which its filter lets through. */
  offer(topic: string, message: PubsubMessage): void;
  change(settings: SubscriptionSettings): void;
  /** @throws FAILED_PRECONDITION where messages are pushed or the subscription is detached */
  checkPull(): void;
  /** What is there, at most so many; waits up to `waitMs` for the first. */
  pull(most: number, waitMs: number, cancelled: AbortSignal): Promise<readonly Delivery[]>;
  endStreams(error: RpcError): void;
  end(error: RpcError): void;
};

export type SubscriptionParts = {
  readonly time: Time;
  readonly faults: Faults;
  readonly keyBatch: number;
  readonly publishDead: (topic: string, item: Item, attributes: Record<string, string>) => boolean;
};

export function createSubscription(initial: SubscriptionSettings, parts: SubscriptionParts): Subscription {
  const { time, faults, keyBatch, publishDead } = parts;
  let current = initial;
  const matches = parseFilter(initial.filter);
  const settings = () => current;
  const forwardDead = (item: Item) => {
    const { deadLetterPolicy, name } = current;
    return deadLetterPolicy !== null && publishDead(deadLetterPolicy.deadLetterTopic, item, deadLetterAttributes(item, name));
  };
  const backlog = createBacklog({ time, faults, settings, forwardDead });
  const streams = new Set<(error: RpcError) => void>();
  let stopPush = () => {};
  let pushing = false;
  const follow = () => {
    const pushes = Boolean(current.pushConfig?.pushEndpoint) && !current.detached;
    if (pushes === pushing) return;
    pushing = pushes;
    stopPush();
    stopPush = pushes ? startPush(backlog, settings, time) : () => {};
  };
  const endStreams = (error: RpcError) => {
    for (const end of [...streams]) end(error);
  };
  follow();
  return {
    backlog,
    streams,
    keyBatch,
    settings,
    offer(topic, message) {
      if (current.topic === topic && !current.detached && matches(message.attributes)) backlog.add(message);
    },
    change(next) {
      current = next;
      follow();
      if (pushing) endStreams(failedPrecondition('the subscription pushes its messages now'));
      if (next.detached) {
        backlog.clear();
        endStreams(failedPrecondition('the subscription is detached from its topic'));
      }
    },
    checkPull() {
      if (current.detached) throw failedPrecondition('the subscription is detached from its topic');
      if (pushing) throw failedPrecondition('the subscription pushes its messages; it cannot be pulled');
    },
    pull: (most, waitMs, cancelled) => pullOnce({ backlog, streams, keyBatch, settings }, time, { most, waitMs, cancelled }),
    endStreams,
    end(error) {
      stopPush();
      endStreams(error);
      backlog.clear();
    },
  };
}

type PullOnce = { readonly most: number; readonly waitMs: number; readonly cancelled: AbortSignal };

function pullOnce(
  { backlog, streams, keyBatch, settings }: StreamSubscription,
  time: Time,
  { most, waitMs, cancelled }: PullOnce,
): Promise<readonly Delivery[]> {
  return new Promise((resolve, reject) => {
    let over = false;
    const leave = () => {
      over = true;
      detach();
      cancelWait();
      streams.delete(fail);
    };
    const answer = (deliveries: readonly Delivery[]) => {
      if (over) return;
      leave();
      resolve(deliveries);
    };
    const fail = (error: RpcError) => {
      leave();
      reject(error);
    };
    const nothing = () => answer([]);
    const consumer: Consumer = {
      keyBatch,
      room: () => ({ messages: over ? 0 : most, bytes: Number.POSITIVE_INFINITY, isIdle: true }),
      leaseMs: () => settings().ackDeadlineSeconds * 1_000,
      deliver: answer,
      settled: () => {},
    };
    streams.add(fail);
    const detach = backlog.attach(consumer);
    const cancelWait = waitMs > 0 ? time.after(waitMs, nothing) : () => {};
    // What is there is delivered in a microtask of its own, which this one follows.
    if (waitMs === 0) queueMicrotask(nothing);
    cancelled.addEventListener('abort', nothing, { once: true });
  });
}

export const noSubscription = (name: string): RpcError => notFound(`subscription ${name} does not exist`);
