import type { Faults } from '../faults.ts';
import type { Journal } from '../journal.ts';
import type { Time } from '../time.ts';
import { type Consumer, type Consumers, createConsumers, type Delivery } from './delivery.ts';
import { recentAckIds } from './exactly-once.ts';
import { createItems, type Item } from './items.ts';
import { createLeases, type Lease } from './leases.ts';
import { byPublishing, type PubsubMessage } from './messages.ts';
import { createQueue } from './queue.ts';
import { backoffMs, type SubscriptionSettings } from './settings.ts';

/** A message without an ack, for inspection. */
export type BacklogMessage = {
  readonly message: PubsubMessage;
  /** Deliveries so far, of this process. */
  readonly deliveryAttempts: number;
  readonly lease: { readonly ackId: string; readonly untilMs: number } | undefined;
};

/** The messages of one subscription and what became of them. */
export type Backlog = Consumers & {
  add(message: PubsubMessage): void;
  /** False for a stale or unknown id, which changes nothing. */
  acknowledge(ackId: string): boolean;
  /** 0 gives the message back; anything else moves the deadline. False for a stale or unknown id, which changes nothing. */
  modifyDeadline(ackId: string, ms: number): boolean;
  /**
   * Of what it holds and of `more` exactly those that `isWanted` are without an ack from now on, and available: no delivery of before
   * counts any more.
   */
  seek(isWanted: (message: PubsubMessage) => boolean, more: readonly PubsubMessage[]): void;
  unacked(): readonly PubsubMessage[];
  messages(): readonly BacklogMessage[];
  size(): number;
  /** The settings changed. */
  follow(): void;
  /** Drops everything. */
  clear(): void;
  /** Ends its timers. */
  close(): void;
};

export type BacklogParts = {
  readonly time: Time;
  readonly faults: Faults;
  readonly journal: Journal;
  readonly nextAckId: () => string;
  readonly settings: () => SubscriptionSettings;
  readonly retentionMs: () => number;
  /** False where there is nowhere to forward to; then the message stays. */
  readonly forwardDead: (item: Item) => boolean;
};

/** So that streams share the load. */
const mostAtOnce = 100;

export function createBacklog({ time, faults, journal, nextAckId, settings, retentionMs, forwardDead }: BacklogParts): Backlog {
  const { name, enableMessageOrdering } = settings();
  const site = { resource: name };
  /** Under exactly-once delivery a client whose ack lost its answer sends it again, and must not hear that it failed. */
  const acked = recentAckIds();

  const remove = (item: Item) => {
    if (item.lease) leases.end(item.lease);
    items.remove(item);
    for (const over of queue.dropped(item)) items.release(over);
  };
  const putBack = (item: Item, delayMs: number) => {
    const { back, over } = queue.returned(item, delayMs);
    for (const again of back) {
      if (again.lease) leases.end(again.lease);
      if (again.acked) items.revived(again);
    }
    for (const one of over) items.release(one);
  };
  const finish = (item: Item) => {
    items.acked(item);
    // An acked message never comes again under exactly-once delivery, so nothing takes it along there.
    const over = settings().enableExactlyOnceDelivery ? [item, ...queue.dropped(item)] : queue.acked(item);
    for (const one of over) items.release(one);
  };
  const fail = (lease: Lease) => {
    const { item } = lease;
    leases.end(lease);
    items.failed(item);
    const { deadLetterPolicy, retryPolicy } = settings();
    const isDead = deadLetterPolicy !== null && item.failures >= deadLetterPolicy.maxDeliveryAttempts;
    if (isDead && forwardDead(item)) remove(item);
    else putBack(item, backoffMs(retryPolicy, item.failures));
    consumers.wake();
  };

  const takeFor = (consumer: Consumer): Item[] => {
    const room = consumer.room();
    const most = Math.min(room.messages, mostAtOnce);
    const taken: Item[] = [];
    let bytes = 0;
    const admit = (item: Item) => {
      // A message larger than the whole room still goes out, alone.
      const alone = room.isIdle && taken.length === 0;
      if (taken.length >= most || (bytes + item.bytes > room.bytes && !alone)) return false;
      taken.push(item);
      bytes += item.bytes;
      return true;
    };
    if (most > 0) queue.offer(consumer.keyBatch, admit);
    return taken;
  };
  const lend = (item: Item, consumer: Consumer): Delivery => {
    const { ackId } = leases.start(nextAckId(), item, consumer);
    item.deliveries += 1;
    return { ackId, message: item.message, deliveryAttempt: settings().deadLetterPolicy ? item.failures + 1 : 0, bytes: item.bytes };
  };

  const consumers = createConsumers((consumer) => takeFor(consumer).map((item) => lend(item, consumer)));
  const leases = createLeases(time, fail);
  const queue = createQueue({ time, isOrdered: enableMessageOrdering, wake: consumers.wake });
  const retainsAcked = () => settings().retainAckedMessages;
  const items = createItems({ time, journal, name, retentionMs, retainsAcked, expire: remove });
  for (const item of items.unacked()) queue.push(item);

  const clear = () => {
    for (const lease of leases.all()) leases.end(lease);
    queue.clear();
    items.clear();
  };
  return {
    ...consumers,
    add(message) {
      const isDuplicate = !settings().enableExactlyOnceDelivery && faults.roll('duplicate', site);
      for (let copy = 0; copy < (isDuplicate ? 2 : 1); copy++) {
        const isFree = !enableMessageOrdering || message.orderingKey === '';
        const wait = faults.roll('delay', site) ?? (isFree ? faults.roll('reorder', site) : undefined);
        queue.push(items.add(message), wait?.delayMs);
      }
      consumers.wake();
    },
    acknowledge(ackId) {
      const lease = leases.find(ackId);
      if (!lease) return acked.has(ackId);
      if (faults.roll('drop-ack', site)) return true;
      if (faults.roll('refuse-ack', site)) {
        fail(lease);
        return false;
      }
      const { item } = lease;
      const { enableExactlyOnceDelivery } = settings();
      leases.end(lease);
      if (enableExactlyOnceDelivery) acked.add(ackId);
      if (!enableExactlyOnceDelivery && !item.replayed && faults.roll('redeliver-after-ack', site)) {
        item.replayed = true;
        putBack(item, 0);
      } else finish(item);
      consumers.wake();
      return true;
    },
    modifyDeadline(ackId, ms) {
      const lease = leases.find(ackId);
      if (!lease) return false;
      if (ms === 0) fail(lease);
      else leases.extend(lease, ms);
      return true;
    },
    seek(isWanted, more) {
      const isRetained = retainsAcked();
      const held = new Map(
        items
          .all()
          .filter((item) => !item.acked || isRetained)
          .map((item) => [item.message.messageId, item]),
      );
      const messages = new Map([...more, ...[...held.values()].map(({ message }) => message)].map((one) => [one.messageId, one]));
      clear();
      for (const message of [...messages.values()].sort(byPublishing)) {
        const before = held.get(message.messageId);
        if (isWanted(message)) queue.push(items.add(message, { failures: before?.acked ? 0 : (before?.failures ?? 0) }));
        else if (isRetained && before) items.add(message, { acked: true });
      }
      consumers.wake();
    },
    unacked: () => items.unacked().map(({ message }) => message),
    messages: () =>
      items.unacked().map(({ message, deliveries, lease }) => ({
        message,
        deliveryAttempts: deliveries,
        lease: lease && { ackId: lease.ackId, untilMs: lease.untilMs },
      })),
    size: items.size,
    follow() {
      items.follow();
      consumers.wake();
    },
    clear,
    close() {
      for (const lease of leases.all()) leases.end(lease);
      queue.clear();
      items.close();
    },
  };
}
