import { setTimeout as pause } from 'node:timers/promises';
import type { Message, PubSub, Subscription } from '@google-cloud/pubsub';

/** As a subscription's least back-off. */
const backOffMs = 100;
const ackStatuses: readonly number[] = [102, 200, 201, 202, 204];

/**
 * Pulls from a subscription and posts each message as Pub/Sub pushes it. Google's emulator cannot push what this demo needs: with a
 * retry policy it stops after some nacks, and without one it pushes early messages again before those that they wait for.
 */
export function forward(pubsub: PubSub, name: string, endpoint: string): Subscription {
  const subscription = pubsub.subscription(name);
  const post = async (message: Message) => {
    const isTaken = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(pushBody(message, subscription.name)),
    }).then(
      async (response) => {
        await response.body?.cancel();
        return ackStatuses.includes(response.status);
      },
      () => false,
    );
    if (isTaken) return message.ack();
    await pause(backOffMs);
    message.nack();
  };
  subscription.on('message', (message) => void post(message));
  return subscription;
}

const pushBody = ({ id, data, attributes, orderingKey, publishTime }: Message, subscription: string) => ({
  message: {
    ...{ messageId: id, message_id: id, publishTime: publishTime.toISOString(), publish_time: publishTime.toISOString() },
    ...{ data: data.toString('base64'), attributes, ...(orderingKey && { orderingKey }) },
  },
  subscription,
});
