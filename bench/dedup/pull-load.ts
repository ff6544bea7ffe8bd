import { PubSub, type Subscription } from '@google-cloud/pubsub';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { startPull } from '../../src/shared/transports/pull.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';
import type { Measure } from '../measure/rounds.ts';
import { consumerOn, payload } from './consumer.ts';

export type PullLoad = {
  /** Messages a second from the first ack to the last of a backlog. */
  readonly backlog: Readonly<Record<'bare' | 'ours', Measure>>;
  close(): Promise<void>;
};

const messageCount = 20_000;

/** Takes deliveries until it is stopped; told of each ack as it is made. */
type Puller = (subscription: Subscription, onAck: () => void) => { close(): Promise<void> };

/** Both sides with the client's own flow control, and one client. */
export function openPullLoad(address: string): PullLoad {
  const pubsub = new PubSub({ projectId: 'bench', apiEndpoint: address, emulatorMode: true });
  const bare: Puller = (subscription, onAck) => {
    subscription.on('message', (message) => {
      message.ack();
      onAck();
    });
    return subscription;
  };
  const ours: Puller = (subscription, onAck) => {
    const consumer = consumerOn(memoryRecordStore(system.clock));
    return startPull({
      subscription,
      handle: async (message, context) => {
        const verdict = await consumer(message, context);
        onAck();
        return verdict;
      },
      deadLetters: keptDeadLetters(),
      system,
      log: silentLog,
    });
  };
  return {
    backlog: { bare: () => drained(pubsub, bare), ours: () => drained(pubsub, ours) },
    close: () => pubsub.close(),
  };
}

let rounds = 0;

async function drained(pubsub: PubSub, pull: Puller): Promise<number> {
  const [topic] = await pubsub.createTopic(`dedup-${++rounds}`);
  const [subscription] = await topic.createSubscription(`dedup-${rounds}`, { ackDeadlineSeconds: 60 });
  await Promise.all(Array.from({ length: messageCount }, () => topic.publishMessage({ data: payload })));
  let acks = 0;
  let firstMs = 0;
  const { promise: allAcked, resolve } = Promise.withResolvers<void>();
  const pulling = pull(subscription, () => {
    acks += 1;
    if (acks === 1) firstMs = performance.now();
    if (acks === messageCount) resolve();
  });
  await allAcked;
  const lastedMs = performance.now() - firstMs;
  await pulling.close();
  await topic.delete();
  return ((messageCount - 1) * 1_000) / lastedMs;
}
