import type { Faults } from '../faults.ts';
import { failedPrecondition, notFound, type RpcError } from '../grpc.ts';
import type { Time } from '../time.ts';
import { type Backlog, type Consumer, createBacklog, type Delivery, type Item } from './backlog.ts';
import { deadLetterAttributes } from './dead-letter.ts';
import { startPush } from './push.ts';
import type { SubscriptionSettings } from './settings.ts';

export type Subscription = {
  readonly backlog: Backlog;
  readonly streams: Set<(error: RpcError) => void>;
  readonly settings: () => SubscriptionSettings;
  change(settings: SubscriptionSettings): void;
  /** @throws FAILED_PRECONDITION where messages are pushed or the subscription is detached */
  checkPull(): void;
  /** What is there, at most so many; waits up to `waitMs` for the first. */
  pull(most: number, waitMs: number, cancelled: AbortSignal): Promise<readonly Delivery[]>;
  end(error: RpcError): void;
};

export type SubscriptionParts = {
  readonly time: Time;
  readonly faults: Faults;
  readonly publishDead: (topic: string, item: Item, attributes: Record<string, string>) => void;
};

export function createSubscription(initial: SubscriptionSettings, { time, faults, publishDead }: SubscriptionParts): Subscription {
  let current = initial;
  const settings = () => current;
  const forwardDead = (item: Item) => {
    const { deadLetterPolicy } = current;
    if (deadLetterPolicy) publishDead(deadLetterPolicy.deadLetterTopic, item, deadLetterAttributes(item, current.name));
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
    settings,
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
    pull: (most, waitMs, cancelled) => pullOnce(backlog, settings, time, { most, waitMs, cancelled }),
    end(error) {
      stopPush();
      endStreams(error);
      backlog.clear();
    },
  };
}

type PullOnce = { readonly most: number; readonly waitMs: number; readonly cancelled: AbortSignal };

function pullOnce(
  backlog: Backlog,
  settings: () => SubscriptionSettings,
  time: Time,
  { most, waitMs, cancelled }: PullOnce,
): Promise<readonly Delivery[]> {
  return new Promise((resolve) => {
    let taken = false;
    const answer = (deliveries: readonly Delivery[]) => {
      taken = true;
      detach();
      cancelWait();
      resolve(deliveries);
    };
    const consumer: Consumer = {
      keyBatch: Number.POSITIVE_INFINITY,
      room: () => ({ messages: taken ? 0 : most, bytes: Number.POSITIVE_INFINITY, isIdle: !taken }),
      leaseMs: () => settings().ackDeadlineSeconds * 1_000,
      deliver: answer,
      settled: () => {},
    };
    const detach = backlog.attach(consumer);
    const cancelWait = time.after(waitMs, () => answer([]));
    cancelled.addEventListener('abort', () => answer([]), { once: true });
  });
}

export const noSubscription = (name: string): RpcError => notFound(`subscription ${name} does not exist`);
