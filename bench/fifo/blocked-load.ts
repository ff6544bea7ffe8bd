import { setTimeout as passed } from 'node:timers/promises';
import { quantile } from '../measure/figures.ts';
import type { Measure } from '../measure/rounds.ts';
import { attributesOf, numbersOf, openTopic } from './backlog.ts';
import { type Addresses, firestoreAt, payload, pubsubAt } from './clients.ts';
import { startConsumer } from './consumer.ts';

export type BlockedLoad = {
  /** Ms from publishing to the handler that 99 of 100 messages of the other streams stay below, in a steady flow over all streams. */
  readonly latencyP99: Readonly<Record<'none' | 'blocked', Measure>>;
  close(): Promise<void>;
};

const streamCount = 16;
const messagesEach = 40;
const messageEveryMs = 8;
/** The client, its connections and the cursors are new before. */
const warmUpEach = 5;

export function openBlockedLoad(addresses: Addresses): BlockedLoad {
  const [db, pubsub] = [firestoreAt(addresses.firestore), pubsubAt(addresses.pubsub)];

  const latencyP99 = (blocks: boolean) => async () => {
    const { topic, subscription } = await openTopic(pubsub);
    const numbers = numbersOf(streamCount + 1, messagesEach);
    const watched = numbers[0]?.stream;
    const others = numbers.filter(({ stream }) => stream !== watched);
    const publishedAtMs = new Map<string, number>();
    const latencies: number[] = [];
    let left = others.length;
    const { promise: allHandled, resolve } = Promise.withResolvers<void>();
    const handle = async ({ attributes }: { readonly attributes: Readonly<Record<string, string>> }) => {
      if (attributes.stream === watched) {
        if (blocks) throw new Error('poison');
        return;
      }
      const sentAtMs = publishedAtMs.get(attributes['ptk-key'] ?? '') ?? Number.NaN;
      if (Number(attributes.sequence) > warmUpEach) latencies.push(performance.now() - sentAtMs);
      left -= 1;
      if (left === 0) resolve();
    };
    const consumer = startConsumer(db, subscription, handle, { maxAttempts: 1 });
    const startMs = performance.now();
    for (const [index, number] of numbers.entries()) {
      await passed(Math.max(startMs + index * messageEveryMs - performance.now(), 0));
      const attributes = attributesOf(number);
      publishedAtMs.set(attributes['ptk-key'] ?? '', performance.now());
      void topic.publishMessage({ data: payload, attributes });
    }
    await allHandled;
    await consumer.close();
    await topic.delete();
    return quantile(latencies, 0.99);
  };
  return {
    latencyP99: { none: latencyP99(false), blocked: latencyP99(true) },
    async close() {
      await Promise.all([db.terminate(), pubsub.close()]);
    },
  };
}
