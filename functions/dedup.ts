import type { Firestore, Transaction } from '@google-cloud/firestore';
import { firestoreInbox } from '../src/shared/adapters/firestore.ts';
import { firestoreStreamStore } from '../src/shared/adapters/firestore-streams.ts';
import { keyOfSetting, payloadFingerprint } from '../src/shared/adapters/keys.ts';
import { otelMeter } from '../src/shared/adapters/otel.ts';
import { system } from '../src/shared/adapters/system.ts';
import { createDedup, type DedupParts } from '../src/shared/dedup/dedup.ts';
import { createInbox, type InboxContext } from '../src/shared/dedup/inbox.ts';
import { dedupOptions } from '../src/shared/dedup/options.ts';
import { readOptions } from '../src/shared/options.ts';
import { createOutbox } from '../src/shared/outbox/outbox.ts';
import type { Context, Handler, VerdictHandler } from '../src/shared/ports.ts';
import { createPush } from '../src/shared/transports/push.ts';
import { checkedSubscription } from '../src/shared/transports/subscription.ts';
import { verdictOf, verdictOfError } from '../src/shared/verdict.ts';
import { type Base, connectBase, connectFirestore } from '../src/shell/clients.ts';
import { openDedupStore } from '../src/shell/dedup-store.ts';
import { type Environment, invalid, withoutSecret } from '../src/shell/settings.ts';
import { createSink, sinkReconcile } from '../src/shell/sink.ts';
import { type HttpFunction, pushFunction } from './http.ts';

/** Runs the sink once per message. A number that ends here goes on to a topic as a tombstone, for a fifo layer behind it. */
export async function startDedup(environment: Environment, folder: string): Promise<HttpFunction> {
  const base = connectBase('dedup', environment);
  const topic = /^topic:(.+)$/s.exec(base.settings.SINK)?.[1];
  const tombstones: DedupParts['tombstones'] =
    topic === undefined ? undefined : async (message) => void (await base.publisher.publish(topic, [message]));
  return pushFunction(createPush({ ...base, handle: await dedupedSink(base, folder, tombstones) }));
}

/** What every way of dedup reads from the settings. */
async function dedupSettings({ settings, environment, log, pubsub }: Base) {
  const options = readOptions(dedupOptions, {}, environment);
  const keyOf = keyOfSetting(settings.DEDUP_KEY);
  if (settings.SUBSCRIPTION !== '' && settings.DEDUP_MODE !== 'off')
    await checkedSubscription(pubsub.subscription(settings.SUBSCRIPTION), { options, log });
  const reading = {
    ...(keyOf && { keyOf }),
    ...(settings.DEDUP_KEY.startsWith('payload') && { fingerprintOf: payloadFingerprint() }),
  };
  return { parts: { consumer: settings.CONSUMER, system, log, meter: otelMeter(), ...reading }, options };
}

/** A module sink whose writes join a transaction, and what it needs for that. */
export async function inboxSink(base: Base, folder: string, db: Firestore) {
  const { settings, publisher } = base;
  const { parts, options } = await dedupSettings(base);
  if (!settings.SINK.startsWith('module:'))
    throw invalid(`SINK is "${withoutSecret(settings.SINK)}"; DEDUP_MODE=inbox needs a module, whose writes join the transaction`);
  const prefix = settings.COLLECTION_PREFIX;
  const outbox = createOutbox({ streams: firestoreStreamStore(db, system.clock, prefix), system });
  const inbox = firestoreInbox(db, system.clock, `${prefix}ptk-dedup`);
  return { parts, options, inbox, outbox, sink: await createSink<InboxContext<Transaction>>(settings.SINK, publisher, folder) };
}

/** The sink under the dedup mode of the settings. */
export async function dedupedSink(base: Base, folder: string, tombstones?: DedupParts['tombstones']): Promise<VerdictHandler> {
  const { settings, log, publisher } = base;
  if (settings.DEDUP_MODE === 'inbox') {
    const { parts, options, inbox, outbox, sink } = await inboxSink(base, folder, await connectFirestore(settings));
    return createInbox({ ...parts, options, store: inbox, outbox })(sink);
  }
  const { parts, options } = await dedupSettings(base);
  const sink = await createSink<Context>(settings.SINK, publisher, folder);
  if (settings.DEDUP_MODE === 'off') return alone(sink);
  const reconcile = await sinkReconcile(settings.SINK, folder);
  const { store } = await openDedupStore(settings, log);
  return createDedup({
    ...parts,
    options,
    store,
    shadow: settings.DEDUP_MODE === 'shadow',
    onMissingKey: settings.DEDUP_MISSING_KEY === 'run' ? 'run' : 'deadLetter',
    onOutage: settings.DEDUP_ON_OUTAGE === 'open' ? 'open' : 'closed',
    effects: settings.DEDUP_EFFECTS === 'external' ? 'external' : 'internal',
    ...(reconcile && { reconcile }),
    ...(tombstones && { tombstones }),
  })(sink);
}

const alone =
  (sink: Handler): VerdictHandler =>
  (message, context) =>
    sink(message, context).then(verdictOf, verdictOfError);
