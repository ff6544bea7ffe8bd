import { parseArgs } from 'node:util';
import { firestoreRecordStore } from '../shared/adapters/firestore.ts';
import { firestoreStreamStore } from '../shared/adapters/firestore-streams.ts';
import { system } from '../shared/adapters/system.ts';
import { readOptions } from '../shared/options.ts';
import type { RelayLease } from '../shared/outbox/decide.ts';
import { outboxOptions } from '../shared/outbox/options.ts';
import { createRelay, type RelayPass } from '../shared/outbox/relay.ts';
import { startRelay } from '../shared/outbox/running-relay.ts';
import { pause } from '../shared/waiting.ts';
import { connectFirestore, connectPublisher } from '../shell/clients.ts';
import { lineLog } from '../shell/log.ts';
import { type Environment, readSettings } from '../shell/settings.ts';

const flags = { once: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } } as const;

/** The client opens a listen a moment after it was asked to, and its own end meanwhile is an error that nobody can catch. */
const listenOpensMs = 50;

/**
 * Publishes what dead publishers and transactions left, until SIGTERM or SIGINT; then ends what is in flight and gives its streams
 * free. Prints each pass that did something.
 *
 * @returns the exit code: 1 where `--once` left something that it could not publish
 */
export async function runRelay(args: string[], environment: Environment = process.env, print = console.log): Promise<number> {
  const { once, json } = parseArgs({ args, options: flags }).values;
  const settings = readSettings('relay', environment);
  const options = readOptions(outboxOptions, {}, environment);
  const log = lineLog((line) => process.stderr.write(line), 'warn', settings.GOOGLE_CLOUD_PROJECT);
  const { pubsub, publisher } = connectPublisher(settings);
  const db = await connectFirestore(settings);
  const prefix = settings.COLLECTION_PREFIX;
  const parts = {
    streams: firestoreStreamStore(db, system.clock, prefix),
    leases: firestoreRecordStore<RelayLease>(db, system.clock, `${prefix}ptk-relays`),
    publisher,
    system,
    log,
    options,
  };
  const told = (pass: RelayPass) => print(json ? JSON.stringify({ relay: pass }) : lineOf(pass));
  try {
    if (once) {
      const pass = await createRelay(parts)();
      told(pass);
      return pass.failed > 0 ? 1 : 0;
    }
    const relay = startRelay({ ...parts, onPass: told });
    await new Promise<void>((resolve) => {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
      print(json ? JSON.stringify({ relay: 'running' }) : 'the relay is running');
    });
    await relay.stop();
    await pause(system.clock, listenOpensMs);
    return 0;
  } finally {
    await Promise.all([pubsub.close(), db.terminate()]);
  }
}

const lineOf = ({ published, failed, dead, streams }: RelayPass): string =>
  `published ${published}, failed ${failed}, dead ${dead}, of ${streams} streams`;
