import type { Firestore } from '@google-cloud/firestore';
import type { Subscription } from '@google-cloud/pubsub';
import { firestoreFifoStore } from '../../src/shared/adapters/firestore-fifo.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createFifo, type FifoParts } from '../../src/shared/fifo/fifo.ts';
import { fifoOptions } from '../../src/shared/fifo/options.ts';
import type { Message } from '../../src/shared/message.ts';
import { startPull } from '../../src/shared/transports/pull.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';

export type Consuming = {
  /** Messages whose cursor moves in one commit. */
  readonly commitEvery?: number;
  readonly maxAttempts?: number;
};

/** What comes early waits in this process until its turn. */
const early: NonNullable<FifoParts['early']> = 'park';
/** As many as the Pub/Sub client has outstanding at most. */
const outstanding = 1_000;

const optionsFor = ({ commitEvery = 1, maxAttempts = fifoOptions.maxAttempts.default }: Consuming): NonNullable<FifoParts['options']> => {
  const asked = { holdMs: 30_000, holdMessages: outstanding, commitEvery, maxAttempts };
  return Object.fromEntries(Object.entries(asked).filter(([name]) => Object.hasOwn(fifoOptions, name)));
};

/** Our consumer as a user composes it. */
export function startConsumer(
  db: Firestore,
  subscription: Subscription,
  handle: (message: Pick<Message, 'attributes'>) => Promise<void>,
  consuming: Consuming = {},
): { close(): Promise<void> } {
  const deadLetters = keptDeadLetters();
  const fifo = createFifo({
    consumer: 'bench',
    store: firestoreFifoStore(db, system.clock),
    system,
    log: silentLog,
    deadLetters,
    early,
    options: optionsFor(consuming),
  });
  return startPull({ subscription, handle: fifo(handle), deadLetters, system, log: silentLog, options: { concurrency: outstanding } });
}
