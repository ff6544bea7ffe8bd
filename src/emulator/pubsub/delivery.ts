import type { PubsubMessage } from './messages.ts';

export type Delivery = {
  readonly ackId: string;
  readonly message: PubsubMessage;
  /** From 1 on under a dead-letter policy, else 0. */
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

export type Consumers = {
  /** Delivers to it from now on; returns its removal, which leaves its leases as they are. */
  attach(consumer: Consumer): () => void;
  /** Something to deliver came up, or room for it. */
  wake(): void;
};

/** Shares out what `take` leases to a consumer, one after the other, until nobody takes any more. */
export function createConsumers(take: (consumer: Consumer) => readonly Delivery[]): Consumers {
  let consumers: readonly Consumer[] = [];
  let waking = false;

  const deliverAll = () => {
    waking = false;
    for (let progress = true; progress; ) {
      progress = false;
      for (const consumer of consumers) {
        const deliveries = take(consumer);
        if (deliveries.length === 0) continue;
        progress = true;
        consumer.deliver(deliveries);
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
  return {
    attach(consumer) {
      consumers = [...consumers, consumer];
      wake();
      return () => {
        consumers = consumers.filter((one) => one !== consumer);
      };
    },
    wake,
  };
}
