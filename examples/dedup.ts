import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { createDedup, createPublisher, type DedupRecord, system } from 'pubsub-toolkit';
import { firestoreRecordStore } from 'pubsub-toolkit/firestore';
import { pubsubPublisher } from 'pubsub-toolkit/pubsub';
import { startPull } from 'pubsub-toolkit/pull';
import { deadLetters, log, subscription, topic } from './setting.ts';

/** Once: a charge is made one time, however often its message comes. */
export async function chargeOnce(charge: (orderId: string) => Promise<void>) {
  const pubsub = new PubSub();
  const store = firestoreRecordStore<DedupRecord>(new Firestore(), system.clock, 'ptk-dedup');
  const dedup = createDedup({ consumer: 'billing', store, system, log });
  const handle = dedup(async (message, { signal }) => {
    signal.throwIfAborted();
    await charge(Buffer.from(message.data).toString());
  });
  const pull = startPull({ subscription: pubsub.subscription(subscription), handle, deadLetters, system, log });
  const publish = createPublisher({ publisher: pubsubPublisher(pubsub), topic, system });
  await publish({ key: 'order-17', data: Buffer.from('order-17') });
  await publish({ key: 'order-17', data: Buffer.from('order-17') }); // the publisher tries again
  return pull;
}
