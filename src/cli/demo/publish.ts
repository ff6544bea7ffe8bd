import type { Firestore } from '@google-cloud/firestore';
import type { PubSub } from '@google-cloud/pubsub';
import { firestoreStreamStore } from '../../shared/adapters/firestore-streams.ts';
import { pubsubPublisher } from '../../shared/adapters/pubsub.ts';
import { system } from '../../shared/adapters/system.ts';
import { createSequencer } from '../../shared/outbox/sequencer.ts';
import { createPublisher } from '../../shared/publishing.ts';
import { lineLog } from '../../shell/log.ts';
import type { Delivery } from './input.ts';
import { topics } from './stack.ts';

export type Published = {
  /** Second publishes that were made. */
  readonly again: number;
  /** Those of them that the outbox knew, so that nothing was sent. */
  readonly knownToOutbox: number;
};

/** Publishes every delivery as a user of the library would. */
export async function publishAll(deliveries: readonly Delivery[], pubsub: PubSub, db: Firestore): Promise<Published> {
  const publisher = pubsubPublisher(pubsub);
  const streams = firestoreStreamStore(db, system.clock);
  const log = lineLog((line) => process.stderr.write(line), 'error');
  const sequencer = createSequencer({ streams, publisher, system, log, options: { handoffMs: 4_000 } });
  const plain = {
    later: createPublisher({ publisher, topic: topics.delayed, system }),
    now: createPublisher({ publisher, topic: topics.plain, system }),
  };
  let again = 0;
  let knownToOutbox = 0;
  const publish = async ({ key, stream, data, delayMs, publishedTwice }: Delivery) => {
    const draft = { key, data, ...(delayMs !== undefined && { delayMs }) };
    const once = () => {
      if (stream === undefined) return (delayMs === undefined ? plain.now : plain.later)(draft);
      return sequencer.publish({ ...draft, stream, topic: delayMs === undefined ? topics.final : topics.delayed });
    };
    const first = await once();
    if (!publishedTwice) return;
    again += 1;
    const second = await once();
    if ('sequence' in first && 'sequence' in second && first.sequence === second.sequence) knownToOutbox += 1;
  };
  await Promise.all(deliveries.map(publish));
  await sequencer.flush();
  return { again, knownToOutbox };
}
