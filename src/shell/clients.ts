import { readFileSync } from 'node:fs';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { createClient } from 'redis';
import { pubsubPublisher } from '../shared/adapters/pubsub.ts';
import { system } from '../shared/adapters/system.ts';
import { textOf } from '../shared/errors.ts';
import type { DeadLetters, Log, Publisher } from '../shared/ports.ts';
import { deadLetterTopic, rejectedDeadLetters } from '../shared/transports/dead-letters.ts';
import { within } from '../shared/waiting.ts';
import { type LogLevel, lineLog } from './log.ts';
import { type Deployable, type Environment, invalid, readSettings, type Settings } from './settings.ts';

/** What every deployable has: its settings, a log, and a way to publish. */
export type Base = {
  readonly settings: Settings;
  readonly environment: Environment;
  readonly log: Log;
  readonly publisher: Publisher;
  readonly deadLetters: DeadLetters;
  /** Only where there is a dead-letter topic. */
  readonly strays: DeadLetters | undefined;
};

const startTimeoutMs = 5_000;

export function connectBase(deployable: Deployable, environment: Environment): Base {
  const settings = readSettings(deployable, environment);
  const log = lineLog((line) => process.stdout.write(line), settings.LOG_LEVEL as LogLevel);
  const publisher = pubsubPublisher(new PubSub({ projectId: settings.GOOGLE_CLOUD_PROJECT }));
  const deadLetters = settings.DEAD_LETTER_TOPIC ? deadLetterTopic(publisher, settings.DEAD_LETTER_TOPIC) : rejectedDeadLetters(log);
  const strays = settings.DEAD_LETTER_TOPIC ? deadLetters : undefined;
  return { settings, environment, log, publisher, deadLetters, strays };
}

/**
 * A Firestore client that has answered.
 * @throws INVALID_SETTINGS when the database cannot be reached
 */
export async function connectFirestore(settings: Settings): Promise<Firestore> {
  const db = new Firestore({ projectId: settings.GOOGLE_CLOUD_PROJECT, databaseId: settings.FIRESTORE_DATABASE });
  const probe = db.collection(`${settings.COLLECTION_PREFIX}ptk-dedup`).doc('start').get();
  await reached('Firestore', probe);
  return db;
}

/**
 * A Redis client that has answered.
 * @throws INVALID_SETTINGS when the server cannot be reached
 */
export async function connectRedis({ REDIS_URL, REDIS_CA_FILE }: Settings, log: Log) {
  const tls = REDIS_CA_FILE ? { socket: { tls: true as const, ca: readFileSync(REDIS_CA_FILE) } } : {};
  const client = createClient({ url: REDIS_URL, ...tls });
  client.on('error', (error: unknown) => log.warn({ reason: textOf(error) }, 'connection to Redis'));
  await reached(
    'Redis',
    client.connect().then(() => client.ping()),
  );
  return client;
}

async function reached(what: string, probe: Promise<unknown>): Promise<void> {
  await within(system.clock, startTimeoutMs, 'STORE_UNAVAILABLE', what, probe).catch((error: unknown) => {
    throw invalid(`${what} cannot be reached: ${textOf(error)}`);
  });
}
