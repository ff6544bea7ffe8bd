import type { Faults } from '../faults.ts';
import type { Time } from '../time.ts';
import { recentAckIds } from './exactly-once.ts';
import { type PubsubMessage, sizeOf } from './messages.ts';
import { type OrderedKey, orderedKey } from './ordered-key.ts';
import { readyQueue } from './ready-queue.ts';
import { backoffMs, type SubscriptionSettings } from './settings.ts';

/** A message of one subscription until its ack. */
export type Item = { readonly message: PubsubMessage; readonly bytes: number; failures: number; lease: Lease | undefined };
export type Lease = { readonly ackId: string; readonly item: Item; readonly consumer: Consumer; cancelDeadline: () => void };
export type Delivery = {
  readonly ackId: string;
  readonly message: PubsubMessage;
  readonly deliveryAttempt: number;
  readonly bytes: number;
};

/** Who takes deliveries: a stream, a waiting pull, or the pusher. */
export type Consumer = {
  room(): { readonly messages: number; readonly bytes: number; readonly isIdle: boolean };
  leaseMs(): number;
  /** How many messages of one ordering key it takes at once. */
  readonly keyBatch: number;
  deliver(deliveries: readonly Delivery[]): void;
  /** A lease of this consumer is over, by ack, nack or deadline. */
  settled(bytes: number): void;
};

export type Backlog = {
  add(message: PubsubMessage): void;
  /** Delivers to it from now on; returns its removal, which leaves its leases as they are. */
  attach(consumer: Consumer): () => void;
  /** False for a stale or unknown id, which changes nothing. */
  acknowledge(ackId: string): boolean;
  /** 0 gives the message back; anything else moves the deadline. False for a stale or unknown id, which changes nothing. */
  modifyDeadline(ackId: string, ms: number): boolean;
  /** Room came up at a consumer. */
  wake(): void;
  size(): number;
  clear(): void;
};

export type BacklogParts = {
  readonly time: Time;
  readonly faults: Faults;
  readonly settings: () => SubscriptionSettings;
  /** False where there is nowhere to forward to; then the message stays. */
  readonly forwardDead: (item: Item) => boolean;
};

/** So that streams share the load. */
const mostAtOnce = 100;
let ackSerial = 0;

export function createBacklog({ time, faults, settings, forwardDead }: BacklogParts): Backlog {
  let ready = readyQueue<Item>();
  const keys = new Map<string, OrderedKey>();
  const readyKeys = new Set<string>();
  const leases = new Map<string, Lease>();
  const timers = new Set<() => void>();
  /** Under exactly-once delivery a client whose ack lost its answer sends it again, and must not hear that it failed. */
  const acked = recentAckIds();
  let consumers: Consumer[] = [];
  let size = 0;
  let waking = false;

  const keyOf = ({ message }: Item) => (settings().enableMessageOrdering ? message.orderingKey : '');
  const later = (delayMs: number, run: () => void) => {
    const cancel = time.after(delayMs, () => {
      timers.delete(cancel);
      run();
      wake();
    });
    timers.add(cancel);
  };

  const noteKey = (name: string, key: OrderedKey) => {
    if (key.isReady()) readyKeys.add(name);
    else readyKeys.delete(name);
    if (key.isEmpty()) keys.delete(name);
  };

  const release = (lease: Lease) => {
    lease.cancelDeadline();
    leases.delete(lease.ackId);
    lease.item.lease = undefined;
    lease.consumer.settled(lease.item.bytes);
  };

  const finish = (item: Item, how: 'acked' | 'dropped') => {
    size -= 1;
    const name = keyOf(item);
    const key = keys.get(name);
    if (!key) return;
    key[how](item);
    noteKey(name, key);
  };

  const fail = (lease: Lease) => {
    const { item } = lease;
    release(lease);
    item.failures += 1;
    const { deadLetterPolicy, retryPolicy } = settings();
    if (deadLetterPolicy && item.failures >= deadLetterPolicy.maxDeliveryAttempts && forwardDead(item)) {
      finish(item, 'dropped');
      return wake();
    }
    const delayMs = backoffMs(retryPolicy, item.failures);
    const name = keyOf(item);
    const key = keys.get(name);
    if (name !== '' && key) failOrdered(name, key, item, delayMs);
    else if (delayMs > 0) later(delayMs, () => ready.push(item));
    else ready.push(item);
    wake();
  };

  const failOrdered = (name: string, key: OrderedKey, item: Item, delayMs: number) => {
    for (const back of key.failed(item)) {
      if (back.lease) release(back.lease);
      else if (back !== item) size += 1;
    }
    if (delayMs > 0) {
      key.wait();
      later(delayMs, () => {
        key.resume();
        noteKey(name, key);
      });
    }
    noteKey(name, key);
  };

  const lend = (item: Item, consumer: Consumer): Delivery => {
    const ackId = `${++ackSerial}-${item.message.messageId}`;
    const lease: Lease = { ackId, item, consumer, cancelDeadline: () => {} };
    lease.cancelDeadline = time.after(consumer.leaseMs(), () => fail(lease));
    item.lease = lease;
    leases.set(ackId, lease);
    return { ackId, message: item.message, deliveryAttempt: settings().deadLetterPolicy ? item.failures + 1 : 0, bytes: item.bytes };
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
    for (const name of readyKeys) {
      const key = keys.get(name);
      if (!key?.takeBatch(consumer.keyBatch, admit)) break;
      noteKey(name, key);
    }
    for (let next = ready.peek(); next && admit(next); next = ready.peek()) ready.take();
    return taken;
  };

  const deliverAll = () => {
    waking = false;
    for (let progress = true; progress; ) {
      progress = false;
      for (const consumer of consumers) {
        const items = takeFor(consumer);
        if (items.length === 0) continue;
        progress = true;
        consumer.deliver(items.map((item) => lend(item, consumer)));
      }
      // The first in turn is not always the same one.
      const [first, ...rest] = consumers;
      if (first) consumers = [...rest, first];
    }
  };
  const wake = () => {
    if (waking || consumers.length === 0) return;
    waking = true;
    queueMicrotask(deliverAll);
  };

  const enqueue = (item: Item) => {
    size += 1;
    const name = keyOf(item);
    if (name !== '') {
      const key = keys.get(name) ?? orderedKey();
      keys.set(name, key);
      key.add(item);
      return noteKey(name, key);
    }
    const held = faults.roll('hold-back', { resource: settings().name });
    if (held?.holdMs) later(held.holdMs * (0.1 + 0.9 * faults.random()), () => ready.push(item));
    else ready.push(item);
  };

  return {
    add(message) {
      const { enableExactlyOnceDelivery, name } = settings();
      const copies = !enableExactlyOnceDelivery && faults.roll('duplicate', { resource: name }) ? 2 : 1;
      for (let copy = 0; copy < copies; copy++) enqueue({ message, bytes: sizeOf(message), failures: 0, lease: undefined });
      wake();
    },
    attach(consumer) {
      consumers = [...consumers, consumer];
      wake();
      return () => {
        consumers = consumers.filter((one) => one !== consumer);
      };
    },
    acknowledge(ackId) {
      const lease = leases.get(ackId);
      if (!lease) return acked.has(ackId);
      release(lease);
      finish(lease.item, 'acked');
      if (settings().enableExactlyOnceDelivery) acked.add(ackId);
      wake();
      return true;
    },
    modifyDeadline(ackId, ms) {
      const lease = leases.get(ackId);
      if (!lease) return false;
      lease.cancelDeadline();
      if (ms === 0) fail(lease);
      else lease.cancelDeadline = time.after(ms, () => fail(lease));
      return true;
    },
    wake,
    size: () => size,
    clear() {
      for (const lease of [...leases.values()]) release(lease);
      for (const cancel of timers) cancel();
      timers.clear();
      keys.clear();
      readyKeys.clear();
      ready = readyQueue();
      size = 0;
    },
  };
}
