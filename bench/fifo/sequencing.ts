import type { Firestore } from '@google-cloud/firestore';
import type { PubSub } from '@google-cloud/pubsub';
import { firestoreStreamStore } from '../../src/shared/adapters/firestore-streams.ts';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createSequencer, type Sequencer } from '../../src/shared/outbox/sequencer.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { ratePerSecond } from '../measure/rounds.ts';
import { type Addresses, firestoreAt, payload, pubsubAt } from './clients.ts';

export const openSequencer = (db: Firestore, pubsub: PubSub): Sequencer =>
  createSequencer({ streams: firestoreStreamStore(db, system.clock), publisher: pubsubPublisher(pubsub), system, log: silentLog });

export type SequenceLoad = {
  /** Messages of one stream a second that are numbered, entered in the outbox, published and marked, by one process. */
  perSecond(durationMs: number): Promise<number>;
  close(): Promise<void>;
};

/** Two groups' worth: while one is under way, the next is full. */
const lanes = 800;

export async function openSequenceLoad(addresses: Addresses): Promise<SequenceLoad> {
  const [db, pubsub] = [firestoreAt(addresses.firestore), pubsubAt(addresses.pubsub)];
  const sequencer = openSequencer(db, pubsub);
  const [topic] = await pubsub.createTopic('sequence');
  let [published, highest] = [0, 0];
  return {
    async perSecond(durationMs) {
      const perSecond = await ratePerSecond(lanes, durationMs, async () => {
        const { sequence } = await sequencer.publish({ topic: topic.name, stream: 'sequence', data: payload });
        published += 1;
        highest = Math.max(highest, sequence);
      });
      await sequencer.flush();
      if (highest !== published) throw new Error(`number ${highest} was given, and ${published} messages were published`);
      return perSecond;
    },
    async close() {
      await Promise.all([db.terminate(), pubsub.close()]);
    },
  };
}
