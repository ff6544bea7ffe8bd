import type { PubSub, Subscription, Topic } from '@google-cloud/pubsub';
import { seededRandom } from '../../src/emulator/faults.ts';
import { payload } from './clients.ts';

export type Numbered = { readonly stream: string; readonly sequence: number };

/** Runs a consumer; `handled` is to be told each number as its handler is done. */
export type Consume = (subscription: Subscription, handled: (number: Numbered) => void) => { close(): Promise<void> };

let backlogs = 0;

/** A topic with a subscription of its own, as every round has one. */
export async function openTopic(pubsub: PubSub): Promise<{ readonly topic: Topic; readonly subscription: Subscription }> {
  const name = `fifo-${++backlogs}`;
  const [topic] = await pubsub.createTopic(name);
  const [subscription] = await topic.createSubscription(name, { ackDeadlineSeconds: 60 });
  return { topic, subscription };
}

/** Under the names of both sides. */
export const attributesOf = ({ stream, sequence }: Numbered): Record<string, string> => ({
  ...{ stream, sequence: `${sequence}` },
  ...{ 'ptk-stream': stream, 'ptk-seq': `${sequence}`, 'ptk-epoch': '1', 'ptk-key': `${stream}-${sequence}` },
});

/** Numbers of so many new streams, round by round. */
export function numbersOf(streams: number, each: number): Numbered[] {
  const names = Array.from({ length: streams }, () => `stream-${++backlogs}`);
  return Array.from({ length: each }, (_, index) => names.map((stream) => ({ stream, sequence: index + 1 }))).flat();
}

/** The same for the same length. */
export function shuffled<Item>(items: readonly Item[]): Item[] {
  const random = seededRandom(items.length);
  const mixed = [...items];
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [mixed[last], mixed[other]] = [mixed[other] as Item, mixed[last] as Item];
  }
  return mixed;
}

/**
 * Publishes a backlog in the order given, then runs the consumer on it.
 * @returns messages a second, from the first delivery until the last number is handled
 * @throws unless each stream is handled in order, and each number once
 */
export async function drainedPerSecond(pubsub: PubSub, numbers: readonly Numbered[], consume: Consume): Promise<number> {
  const { topic, subscription } = await openTopic(pubsub);
  await Promise.all(numbers.map((number) => topic.publishMessage({ data: payload, attributes: attributesOf(number) })));
  const last = new Map<string, number>();
  let left = numbers.length;
  const { promise: allHandled, resolve, reject } = Promise.withResolvers<void>();
  const handled = ({ stream, sequence }: Numbered) => {
    const before = last.get(stream) ?? 0;
    if (sequence !== before + 1) reject(new Error(`${stream}: number ${sequence} was handled after ${before}`));
    last.set(stream, sequence);
    left -= 1;
    if (left === 0) resolve();
  };
  let firstMs = 0;
  const consuming = consume(subscription, handled);
  subscription.once('message', () => {
    firstMs = performance.now();
  });
  subscription.on('error', reject);
  await allHandled;
  const lastedMs = performance.now() - firstMs;
  await consuming.close();
  await topic.delete();
  return (numbers.length * 1_000) / lastedMs;
}
