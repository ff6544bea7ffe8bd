import { firestoreInbox, firestoreRecordStore } from '../src/shared/adapters/firestore.ts';
import { redisRecordStore } from '../src/shared/adapters/redis.ts';
import { system } from '../src/shared/adapters/system.ts';
import type { DedupRecord } from '../src/shared/dedup/decide.ts';
import { createDedup } from '../src/shared/dedup/dedup.ts';
import { createInbox } from '../src/shared/dedup/inbox.ts';
import { dedupOptions } from '../src/shared/dedup/options.ts';
import { readOptions } from '../src/shared/options.ts';
import type { Context, Handler, VerdictHandler } from '../src/shared/ports.ts';
import { createPush } from '../src/shared/transports/push.ts';
import { verdictOf, verdictOfError } from '../src/shared/verdict.ts';
import { type Base, connectBase, connectFirestore, connectRedis } from '../src/shell/clients.ts';
import { type Environment, invalid, withoutSecret } from '../src/shell/settings.ts';
import { createSink } from '../src/shell/sink.ts';
import { type HttpFunction, pushFunction } from './http.ts';

/** Runs the sink once per message. */
export async function startDedup(environment: Environment, folder: string): Promise<HttpFunction> {
  const base = connectBase('dedup', environment);
  return pushFunction(createPush({ ...base, handle: await dedupedSink(base, folder) }));
}

/** The sink under the dedup mode of the settings. */
export async function dedupedSink(base: Base, folder: string): Promise<VerdictHandler> {
  const { settings, environment, log, publisher } = base;
  const options = readOptions(dedupOptions, {}, environment);
  const parts = { consumer: settings.CONSUMER, system, log, options };
  const collection = `${settings.COLLECTION_PREFIX}ptk-dedup`;
  if (settings.DEDUP_MODE === 'inbox') {
    if (!settings.SINK.startsWith('module:'))
      throw invalid(`SINK is "${withoutSecret(settings.SINK)}"; DEDUP_MODE=inbox needs a module, whose writes join the transaction`);
    const store = firestoreInbox(await connectFirestore(settings), system.clock, collection);
    return createInbox({ ...parts, store })(await createSink(settings.SINK, publisher, folder));
  }
  const sink = await createSink<Context>(settings.SINK, publisher, folder);
  if (settings.DEDUP_MODE === 'off') return alone(sink);
  const store =
    settings.STORE === 'redis'
      ? redisRecordStore<DedupRecord>(await connectRedis(settings, log), `${settings.COLLECTION_PREFIX}ptk:dedup:`)
      : firestoreRecordStore<DedupRecord>(await connectFirestore(settings), system.clock, collection);
  return createDedup({ ...parts, store })(sink);
}

const alone =
  (sink: Handler): VerdictHandler =>
  (message, context) =>
    sink(message, context).then(verdictOf, verdictOfError);
