import type { Message as PubsubMessage } from '@google-cloud/pubsub';
import { lazyContext } from '../context.ts';
import { type Message, traceIdOf } from '../message.ts';
import type { Clock, Context } from '../ports.ts';
import { type ExtensionEnd, watchExtension } from './extension.ts';

/** A delivery from its receipt until it is settled, which happens once whoever asks. */
export type Taken = {
  readonly message: Message;
  readonly context: Context;
  isSettled: boolean;
  /** False once Pub/Sub may deliver the message again: then it must not be acked. */
  isExtended: boolean;
  /** Aborts the handler's signal. */
  stop(reason: Error): void;
  ack(): void;
  nack(): void;
};

export type TakeParts = {
  readonly subscription: { readonly name: string };
  readonly clock: Clock;
  readonly maxExtensionMs: number;
  /** How many deliveries are handled at once. */
  readonly places: number;
  /** Only before the delivery is settled, and once. */
  onExtensionEnd(taken: Taken, end: ExtensionEnd): void;
  /** Exactly-once delivery: Pub/Sub refused the ack, so the message comes again. */
  onAckFailed(taken: Taken, error: unknown): void;
};

/** Ids for the log; never the payload. */
export const aboutMessage = (message: Message) => ({ messageId: message.messageId, traceId: traceIdOf(message) });

export function takeDelivery(delivery: PubsubMessage, parts: TakeParts): Taken {
  const known = { places: parts.places };
  let abort: AbortController | undefined;
  let stopped: Error | undefined;

  const stopWatching = watchExtension(delivery, parts.clock, parts.maxExtensionMs, (end) => {
    if (taken.isSettled || !taken.isExtended) return;
    taken.isExtended = false;
    taken.stop(end.reason);
    parts.onExtensionEnd(taken, end);
  });
  /** True for the first who asks. */
  const settles = (): boolean => {
    if (taken.isSettled) return false;
    taken.isSettled = true;
    stopWatching();
    return true;
  };
  const taken: Taken = {
    message: received(delivery, parts.subscription.name),
    context: lazyContext(() => {
      abort ??= new AbortController();
      if (stopped) abort.abort(stopped);
      return abort.signal;
    }, known),
    isSettled: false,
    isExtended: true,
    stop(reason) {
      stopped ??= reason;
      abort?.abort(stopped);
    },
    ack() {
      if (!settles()) return;
      // Resolves at once without exactly-once delivery.
      delivery.ackWithResponse().then(
        (answer) => {
          if (answer !== 'SUCCESS') parts.onAckFailed(taken, new Error(`the client answered ${answer}`));
        },
        (error: unknown) => parts.onAckFailed(taken, error),
      );
    },
    nack() {
      if (settles()) delivery.nack();
    },
  };
  return taken;
}

export function received(delivery: PubsubMessage, subscription: string): Message {
  const publishTimeMs = delivery.publishTime.getTime();
  return {
    messageId: delivery.id,
    data: delivery.data,
    attributes: { ...delivery.attributes },
    orderingKey: delivery.orderingKey ?? '',
    publishTimeMs: publishTimeMs > 0 ? publishTimeMs : undefined,
    subscription,
    deliveryAttempt: delivery.deliveryAttempt || undefined,
  };
}
