import { readFileSync } from 'node:fs';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { createClient, createCluster } from 'redis';
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
  readonly pubsub: PubSub;
  readonly publisher: Publisher;
  readonly deadLetters: DeadLetters;
  /** Only where there is a dead-letter topic. */
  readonly strays: DeadLetters | undefined;
};

const startTimeoutMs = 5_000;

export function connectBase(deployable: Deployable, environment: Environment): Base {
  const settings = readSettings(deployable, environment);
  const log = lineLog((line) => process.stdout.write(line), settings.LOG_LEVEL as LogLevel, settings.GOOGLE_CLOUD_PROJECT);
  const { pubsub, publisher } = connectPublisher(settings);
  const deadLetters = settings.DEAD_LETTER_TOPIC ? deadLetterTopic(publisher, settings.DEAD_LETTER_TOPIC) : rejectedDeadLetters(log);
  const strays = settings.DEAD_LETTER_TOPIC ? deadLetters : undefined;
  return { settings, environment, log, pubsub, publisher, deadLetters, strays };
}

/** A way to publish, and the client that is to be closed in the end. */
export function connectPublisher(settings: Settings): Pick<Base, 'pubsub' | 'publisher'> {
  const pubsub = new PubSub({ projectId: settings.GOOGLE_CLOUD_PROJECT });
  return { pubsub, publisher: pubsubPublisher(pubsub) };
}

/**
 * A Firestore client that has answered.
 * @throws INVALID_SETTINGS when the database cannot be reached
 */
export async function connectFirestore(settings: Settings): Promise<Firestore> {
  const db = new Firestore({
    projectId: settings.GOOGLE_CLOUD_PROJECT,
    databaseId: settings.FIRESTORE_DATABASE,
    // Else a read in a transaction that has lost is tried again for seconds (`docs/facts.md` B.6).
    gaxServerStreamingRetries: true,
  });
  const probe = db.collection(`${settings.COLLECTION_PREFIX}ptk-dedup`).doc('start').get();
  await reached('Firestore', probe);
  return db;
}

/**
 * A Redis client, of one server or of a cluster, that has answered.
 * @throws INVALID_SETTINGS when the server cannot be reached
 */
export async function connectRedis({ REDIS_URL, REDIS_CA_FILE, REDIS_CLUSTER }: Settings, log: Log) {
  const onError = (error: unknown) => log.warn({ reason: textOf(error) }, 'connection to Redis');
  const tls = REDIS_CA_FILE ? { socket: { tls: true as const, ca: readFileSync(REDIS_CA_FILE) } } : {};
  if (REDIS_CLUSTER === 'on') {
    // Nodes that are found later are reached as the first one is.
    const { username, password } = new URL(REDIS_URL);
    const login = {
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
    };
    const cluster = createCluster({ rootNodes: [{ url: REDIS_URL }], defaults: { ...tls, ...login } });
    cluster.on('error', onError);
    await reached('Redis', cluster.connect());
    return cluster;
  }
  const client = createClient({ url: REDIS_URL, ...tls });
  client.on('error', onError);
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
