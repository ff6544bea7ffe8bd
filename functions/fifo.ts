import type { Firestore } from '@google-cloud/firestore';
import { firestoreRecordStore } from '../src/shared/adapters/firestore.ts';
import { firestoreFifoStore, firestoreFifoTransactions } from '../src/shared/adapters/firestore-fifo.ts';
import { firestoreStreamStore } from '../src/shared/adapters/firestore-streams.ts';
import { otelMeter } from '../src/shared/adapters/otel.ts';
import { system } from '../src/shared/adapters/system.ts';
import { createFifo, type FifoHandler, type FifoParts } from '../src/shared/fifo/fifo.ts';
import { createInboxFifo } from '../src/shared/fifo/inbox-fifo.ts';
import { fifoOptions } from '../src/shared/fifo/options.ts';
import { readOptions } from '../src/shared/options.ts';
import type { RelayLease } from '../src/shared/outbox/decide.ts';
import { outboxOptions } from '../src/shared/outbox/options.ts';
import { createRelay } from '../src/shared/outbox/relay.ts';
import { createPush } from '../src/shared/transports/push.ts';
import { checkedFifoSubscription } from '../src/shared/transports/subscription.ts';
import { type Base, connectBase, connectFirestore } from '../src/shell/clients.ts';
import type { Environment } from '../src/shell/settings.ts';
import { dedupedSink, inboxSink } from './dedup.ts';
import { type HttpFunction, pushFunction } from './http.ts';

/**
 * Runs the sink in order and once: `fifo(dedup(sink))`, or with `DEDUP_MODE=inbox` both in the sink's own transaction. `POST /relay` publishes what dead publishers left, `POST /sweep` runs
 * what dead processes left parked.
 */
export async function startFifo(environment: Environment, folder: string): Promise<HttpFunction> {
  const base = connectBase('fifo', environment);
  const { settings, log, publisher } = base;
  const options = readOptions(fifoOptions, {}, environment);
  const relayOptions = readOptions(outboxOptions, {}, environment);
  const db = await connectFirestore(settings);
  const prefix = settings.COLLECTION_PREFIX;
  const store = firestoreFifoStore(db, system.clock, prefix);
  const parts = { ...base, consumer: settings.CONSUMER, store, system, meter: otelMeter(), options };
  const early = settings.FIFO_EARLY === 'nack' ? 'nack' : 'park';
  if (settings.SUBSCRIPTION !== '') {
    await checkedFifoSubscription(base.pubsub.subscription(settings.SUBSCRIPTION), { early, leaseMs: options.leaseMs, log });
  }
  const streams = firestoreStreamStore(db, system.clock, prefix);
  const onPoison = {
    block: 'block',
    'dead-letter': 'deadLetter',
    divert: { divert: { publisher, topic: settings.FIFO_LANE_TOPIC } },
  } as const;
  const rules: FifoParts = {
    ...parts,
    early,
    onPoison: onPoison[settings.FIFO_ON_POISON as keyof typeof onPoison],
    onNewEpoch: settings.FIFO_ON_NEW_EPOCH === 'follow' ? 'follow' : 'block',
    startAt: settings.FIFO_START_AT === 'first-seen' ? 'firstSeen' : Number(settings.FIFO_START_AT),
    gaps: { ledger: streams, publisher, onMissing: settings.FIFO_ON_GAP === 'skip' ? 'skip' : 'report' },
  };
  const fifo =
    settings.DEDUP_MODE === 'inbox' ? await inTransactions(base, folder, rules, db) : createFifo(rules)(await dedupedSink(base, folder));
  const relay = createRelay({
    streams,
    leases: firestoreRecordStore<RelayLease>(db, system.clock, `${prefix}ptk-relays`),
    publisher,
    system,
    log,
    options: relayOptions,
  });
  return pushFunction(createPush({ ...base, handle: fifo }), { '/relay': relay, '/sweep': fifo.sweep });
}

/** Effects, records and the position of a stream in one commit. */
async function inTransactions(base: Base, folder: string, rules: FifoParts, db: Firestore): Promise<FifoHandler> {
  const { parts, options, inbox, outbox, sink } = await inboxSink(base, folder, db);
  const transactions = firestoreFifoTransactions(db, system.clock, base.settings.COLLECTION_PREFIX);
  return createInboxFifo({ ...parts, ...rules, dedup: options, inbox, outbox, transactions })(sink);
}
