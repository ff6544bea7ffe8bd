import { setTimeout as passed } from 'node:timers/promises';
import type { Measure } from '../measure/rounds.ts';
import { type Consume, drainedPerSecond, numbersOf, shuffled } from './backlog.ts';
import { type Addresses, firestoreAt, pubsubAt } from './clients.ts';
import { startConsumer } from './consumer.ts';
import { patternSubscriber } from './published-pattern.ts';

export type StreamLoad = {
  /** Messages a second of one stream whose arrival is shuffled, by handlers that do nothing. */
  readonly shuffled: Readonly<Record<'published' | 'perMessage' | 'coalesced', Measure>>;
  /** Messages a second of one stream and of 64, each in order, by handlers of 5 ms. */
  readonly streams: Readonly<Record<'one' | 'many', Measure>>;
  close(): Promise<void>;
};

/** The pattern gets fewer: each one that is early is read and nacked over and over, so it is slower the more there are. */
const messageCounts = { published: 80, perMessage: 500, coalesced: 1_000 };
const coalesced = { commitEvery: 50 };
const handlerMs = 5;

export function openStreamLoad(addresses: Addresses): StreamLoad {
  const [db, pubsub] = [firestoreAt(addresses.firestore), pubsubAt(addresses.pubsub)];
  const numberOf = (attributes: Readonly<Record<string, string>>) => ({
    stream: attributes.stream ?? '',
    sequence: Number(attributes.sequence),
  });
  const pattern: Consume = (subscription, handled) => {
    patternSubscriber(db, subscription, async ({ attributes }) => handled(numberOf(attributes)));
    return subscription;
  };
  const ours =
    (commitEvery = 1, lastsMs = 0): Consume =>
    (subscription, handled) =>
      startConsumer(
        db,
        subscription,
        async ({ attributes }) => {
          if (lastsMs > 0) await passed(lastsMs);
          handled(numberOf(attributes));
        },
        { commitEvery },
      );
  const drained = (count: number, consume: Consume) => () => drainedPerSecond(pubsub, shuffled(numbersOf(1, count)), consume);
  const inOrder = (streams: number, each: number) => () => drainedPerSecond(pubsub, numbersOf(streams, each), ours(1, handlerMs));
  return {
    shuffled: {
      published: drained(messageCounts.published, pattern),
      perMessage: drained(messageCounts.perMessage, ours()),
      coalesced: drained(messageCounts.coalesced, ours(coalesced.commitEvery)),
    },
    streams: { one: inOrder(1, 200), many: inOrder(64, 40) },
    async close() {
      await Promise.all([db.terminate(), pubsub.close()]);
    },
  };
}
