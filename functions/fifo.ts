import { firestoreRecordStore } from '../src/shared/adapters/firestore.ts';
import { firestoreStreamStore } from '../src/shared/adapters/firestore-streams.ts';
import { system } from '../src/shared/adapters/system.ts';
import type { Cursor } from '../src/shared/fifo/decide.ts';
import { createFifo } from '../src/shared/fifo/fifo.ts';
import { fifoOptions } from '../src/shared/fifo/options.ts';
import { readOptions } from '../src/shared/options.ts';
import type { RelayLease } from '../src/shared/outbox/decide.ts';
import { outboxOptions } from '../src/shared/outbox/options.ts';
import { createRelay } from '../src/shared/outbox/relay.ts';
import { createPush } from '../src/shared/transports/push.ts';
import { connectBase, connectFirestore } from '../src/shell/clients.ts';
import type { Environment } from '../src/shell/settings.ts';
import { dedupedSink } from './dedup.ts';
import { type HttpFunction, pushFunction } from './http.ts';

/** Runs the sink in order and once: `fifo(dedup(sink))`. `POST /relay` publishes what dead publishers left. */
export async function startFifo(environment: Environment, folder: string): Promise<HttpFunction> {
  const base = connectBase('fifo', environment);
  const { settings, log, publisher } = base;
  const options = readOptions(fifoOptions, {}, environment);
  const relayOptions = readOptions(outboxOptions, {}, environment);
  const db = await connectFirestore(settings);
  const prefix = settings.COLLECTION_PREFIX;
  const store = firestoreRecordStore<Cursor>(db, system.clock, `${prefix}ptk-cursors`);
  const fifo = createFifo({ ...base, consumer: settings.CONSUMER, store, system, options });
  const relay = createRelay({
    streams: firestoreStreamStore(db, system.clock, prefix),
    leases: firestoreRecordStore<RelayLease>(db, system.clock, `${prefix}ptk-relays`),
    publisher,
    system,
    log,
    options: relayOptions,
  });
  return pushFunction(createPush({ ...base, handle: fifo(await dedupedSink(base, folder)) }), { '/relay': relay });
}
