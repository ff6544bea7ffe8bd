import type { Faults } from '../faults.ts';
import { failedPrecondition, notFound, type RpcError } from '../grpc.ts';
import type { Journal } from '../journal.ts';
import type { Identity } from '../oidc.ts';
import type { Time } from '../time.ts';
import { type Backlog, createBacklog } from './backlog.ts';
import { deadLetterAttributes } from './dead-letter.ts';
import { parseFilter } from './filter.ts';
import { idleTimer } from './idle.ts';
import type { Item } from './items.ts';
import type { PubsubMessage } from './messages.ts';
import { startPush } from './push.ts';
import type { Serials } from './serials.ts';
import { type Duration, msOfDuration, type SubscriptionSettings } from './settings.ts';

/** A call that waits for messages. */
export type OpenCall = { readonly kind: 'stream' | 'pull'; end(error: RpcError): void };

/** Where a stream or a pull takes its messages. */
export type Source = {
  readonly backlog: Backlog;
  readonly settings: () => SubscriptionSettings;
  /** How many messages of one ordering key a stream or a pull may have at once. */
  readonly keyBatch: number;
  readonly calls: Set<OpenCall>;
  /** Somebody uses it, so that it does not expire. */
  touch(): void;
};

export type Subscription = Source & {
  /** Takes a message of its topic which its filter lets through. */
  offer(topic: string, message: PubsubMessage): void;
  change(settings: SubscriptionSettings): void;
  /** As `docs/facts.md` A.5 has it: of what is retained here and of `more`, what passes its filter and `isWanted` is to be delivered. */
  seek(isWanted: (message: PubsubMessage) => boolean, more: readonly PubsubMessage[]): void;
  /** @throws FAILED_PRECONDITION where the subscription is detached */
  checkAttached(): void;
  /** @throws FAILED_PRECONDITION where messages are pushed or the subscription is detached */
  checkPull(): void;
  endCalls(error: RpcError): void;
  /** Ends everything but the messages. */
  close(error: RpcError): void;
};

export type SubscriptionParts = {
  readonly time: Time;
  readonly faults: Faults;
  readonly journal: Journal;
  readonly serials: Serials;
  readonly identity: Identity;
  readonly keyBatch: number;
  readonly publishDead: (topic: string, item: Item, attributes: Record<string, string>) => boolean;
  readonly topicRetention: (topic: string) => Duration | null;
  readonly expired: (subscription: string) => void;
};

/** Reads its messages back from the journal. */
export function createSubscription(initial: SubscriptionSettings, parts: SubscriptionParts): Subscription {
  const { time, faults, journal, serials, keyBatch, publishDead, topicRetention, expired } = parts;
  const { name } = initial;
  let current = initial;
  const matches = parseFilter(initial.filter);
  const settings = () => current;
  const calls = new Set<OpenCall>();
  const backlog = createBacklog({
    time,
    faults,
    journal,
    nextAckId: serials.nextAckId,
    settings,
    retentionMs: () => longestMs(current.messageRetentionDuration, topicRetention(current.topic)),
    forwardDead: (item) =>
      current.deadLetterPolicy !== null && publishDead(current.deadLetterPolicy.deadLetterTopic, item, deadLetterAttributes(item, name)),
  });
  const idle = idleTimer({
    time,
    ttlMs: () => (current.expirationPolicy?.ttl ? msOfDuration(current.expirationPolicy.ttl) : undefined),
    isInUse: () => [...calls].some(({ kind }) => kind === 'stream'),
    expired: () => expired(name),
  });

  let stopPush: (() => void) | undefined;
  const follow = () => {
    const pushes = Boolean(current.pushConfig?.pushEndpoint) && !current.detached;
    if (pushes === (stopPush !== undefined)) return;
    stopPush?.();
    stopPush = pushes ? startPush(backlog, { ...parts, settings, acked: idle.touch }) : undefined;
  };
  const endCalls = (error: RpcError) => {
    for (const { end } of [...calls]) end(error);
  };
  const checkAttached = () => {
    if (current.detached) throw detachedError();
  };
  follow();
  return {
    backlog,
    calls,
    keyBatch,
    settings,
    offer(topic, message) {
      if (current.topic === topic && !current.detached && matches(message.attributes)) backlog.add(message);
    },
    change(next) {
      current = next;
      follow();
      idle.follow();
      backlog.follow();
      if (stopPush) endCalls(failedPrecondition('the subscription pushes its messages now'));
      if (next.detached) {
        backlog.clear();
        endCalls(detachedError());
      }
    },
    seek(isWanted, more) {
      backlog.seek(
        isWanted,
        more.filter(({ attributes }) => matches(attributes)),
      );
    },
    touch: idle.touch,
    checkAttached,
    checkPull() {
      checkAttached();
      if (stopPush) throw failedPrecondition('the subscription pushes its messages; it cannot be pulled');
    },
    endCalls,
    close(error) {
      stopPush?.();
      endCalls(error);
      idle.stop();
      backlog.close();
    },
  };
}

const longestMs = (...durations: readonly (Duration | null)[]) =>
  Math.max(...durations.map((duration) => (duration ? msOfDuration(duration) : 0)));

const detachedError = () => failedPrecondition('the subscription is detached from its topic');
export const noSubscription = (name: string): RpcError => notFound(`subscription ${name} does not exist`);
