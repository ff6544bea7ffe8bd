import type { Message, PubSub, Subscription } from '@google-cloud/pubsub';

/** What comes to a topic from now on, through a subscription of its own; every message is acked. */
export type Inbox = { readonly messages: Message[]; count(messages: number): Promise<Message[]>; close(): Promise<void> };

export async function listenTo(pubsub: PubSub, topic: string, name = `${topic}-test`): Promise<Inbox> {
  const [subscription]: [Subscription, ...unknown[]] = await pubsub.topic(topic).createSubscription(name);
  const messages: Message[] = [];
  const waiting: { count: number; resolve: (messages: Message[]) => void }[] = [];
  subscription.on('message', (message) => {
    messages.push(message);
    message.ack();
    for (const { count, resolve } of waiting) if (messages.length >= count) resolve(messages);
  });
  return {
    messages,
    count: (count) => new Promise((resolve) => (messages.length >= count ? resolve(messages) : waiting.push({ count, resolve }))),
    close: () => subscription.close(),
  };
}
