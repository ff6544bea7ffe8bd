import type { Message as PubsubMessage, Subscription } from '@google-cloud/pubsub';
import { textOf } from '../errors.ts';
import type { Message } from '../message.ts';
import type { DeadLetters, Log, System, VerdictHandler } from '../ports.ts';
import { nack, type Verdict } from '../verdict.ts';
import { pause } from '../waiting.ts';

export type PullParts = {
  /** Its flow control is the number of messages handled at once. The caller made it; `close` closes it. */
  readonly subscription: Subscription;
  readonly handle: VerdictHandler;
  readonly deadLetters: DeadLetters;
  readonly system: System;
  readonly log: Log;
};

export type Pull = {
  /** Takes no more, waits for what is running, gives back the rest. */
  close(): Promise<void>;
};

/** A nacked message comes back at once, so one that is in progress elsewhere is kept for a while first. */
const holdMs = 1_000;

/** Subscribes with the Pub/Sub client: every delivery is settled exactly once. */
export function startPull({ subscription, handle, deadLetters, system, log }: PullParts): Pull {
  const running = new Set<Promise<void>>();
  const abort = new AbortController();
  let closing = false;

  const verdictFor = async (message: Message): Promise<Verdict> => {
    const verdict = await handle(message, { signal: abort.signal });
    if (verdict.kind === 'deadLetter') await deadLetters.publish(message, verdict);
    return verdict;
  };
  const settle = async (delivery: PubsubMessage) => {
    const message = received(delivery, subscription.name);
    const verdict = await verdictFor(message).catch((error: unknown) => {
      log.error({ messageId: message.messageId, reason: textOf(error) }, 'delivery failed');
      return nack('failed');
    });
    log.debug({ messageId: message.messageId, reason: verdict.reason }, verdict.kind === 'nack' ? 'not acked' : 'acked');
    if (verdict.kind !== 'nack') return delivery.ack();
    if (verdict.retryAfterMs !== undefined && !abort.signal.aborted) await pause(system.clock, Math.min(verdict.retryAfterMs, holdMs));
    delivery.nack();
  };
  const take = (delivery: PubsubMessage) => {
    if (closing) return;
    const work = settle(delivery).finally(() => running.delete(work));
    running.add(work);
  };
  subscription.on('message', take);
  subscription.on('error', (error) =>
    log.error({ subscription: subscription.name, reason: textOf(error) }, 'subscription closed by an error'),
  );

  return {
    async close() {
      // The listener stays: without one the client closes at once, and nacks what is still running.
      closing = true;
      await Promise.all(running);
      abort.abort();
      await subscription.close();
    },
  };
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
