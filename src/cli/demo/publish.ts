import type { Firestore } from '@google-cloud/firestore';
import { firestoreStreamStore } from '../../shared/adapters/firestore-streams.ts';
import { system } from '../../shared/adapters/system.ts';
import { createSequencer } from '../../shared/outbox/sequencer.ts';
import type { Publisher } from '../../shared/ports.ts';
import { createPublisher } from '../../shared/publishing.ts';
import { lineLog } from '../../shell/log.ts';
import { type Delivery, dueAttribute } from './input.ts';
import { topics } from './stack.ts';

export type Published = {
  /** Second publishes that were made. */
  readonly again: number;
  /** Those of them that the outbox knew, so that nothing was sent. */
  readonly knownToOutbox: number;
};

/** Short, so that the relay gets some work. */
const handoffMs = 4_000;
/** Long: all streams commit at once, and Google's emulator takes its time. */
const storeTimeoutMs = 60_000;

/** The instruction does not travel to the final topic, so the sink is told by an attribute of our own what it is to compare. */
function dueIn(delayMs: number) {
  const deliverAtMs = system.clock.nowMs() + delayMs;
  return { deliverAtMs, attributes: { [dueAttribute]: new Date(deliverAtMs).toISOString() } };
}

/** Publishes every delivery as a user of the library would. */
export async function publishAll(deliveries: readonly Delivery[], publisher: Publisher, db: Firestore): Promise<Published> {
  const streams = firestoreStreamStore(db, system.clock);
  const log = lineLog((line) => process.stderr.write(line), 'error');
  const sequencer = createSequencer({ streams, publisher, system, log, options: { handoffMs, storeTimeoutMs } });
  const plain = {
    later: createPublisher({ publisher, topic: topics.delayed, system }),
    now: createPublisher({ publisher, topic: topics.plain, system }),
  };
  let again = 0;
  let knownToOutbox = 0;
  const publish = async ({ key, stream, data, delayMs, publishedTwice }: Delivery) => {
    const draft = { key, data, ...(delayMs !== undefined && dueIn(delayMs)) };
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
