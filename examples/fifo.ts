import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { createFifo, createSequencer, system } from 'pubsub-toolkit';
import { pubsubPublisher } from 'pubsub-toolkit/pubsub';
import { startPull } from 'pubsub-toolkit/pull';
import { firestoreFifoStore, firestoreStreamStore } from 'pubsub-toolkit/streams';
import { deadLetters, log, subscription, topic } from './setting.ts';

/** In order: the steps of one order are handled 1, 2, 3, each after the one before is done. */
export async function followOrder(steps: readonly string[], onStep: (step: string) => Promise<void>) {
  const [db, pubsub] = [new Firestore(), new PubSub()];
  const store = firestoreFifoStore(db, system.clock);
  // An early step waits here for the one before it, and is parked then; the pull sweeps what a killed process forgot.
  const fifo = createFifo({ consumer: 'shipping', store, deadLetters, system, log, options: { holdMs: 10_000 } });
  const handle = fifo((message) => onStep(Buffer.from(message.data).toString()));
  const pull = startPull({ subscription: pubsub.subscription(subscription), handle, deadLetters, system, log });
  const streams = firestoreStreamStore(db, system.clock);
  const sequencer = createSequencer({ streams, publisher: pubsubPublisher(pubsub), system, log });
  await Promise.all(
    steps.map((step) => sequencer.publish({ stream: 'order-17', topic, key: `order-17/${step}`, data: Buffer.from(step) })),
  );
  return pull;
}
