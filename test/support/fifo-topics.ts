import { Duration, PubSub } from '@google-cloud/pubsub';
import { afterAll, expect, onTestFinished, vi } from 'vitest';
import type { ManualTime, Time } from '../../src/emulator/time.ts';
import { firestoreFifoStore } from '../../src/shared/adapters/firestore-fifo.ts';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import { system as real } from '../../src/shared/adapters/system.ts';
import { createFifoCommands } from '../../src/shared/fifo/commands.ts';
import { createFifo, type FifoHandler, type FifoParts } from '../../src/shared/fifo/fifo.ts';
import type { Handler, Publisher, System } from '../../src/shared/ports.ts';
import { startPull } from '../../src/shared/transports/pull.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';
import type { Databases } from './databases.ts';
import { keptMeter } from './dedup-workers.ts';
import { draft, sequencing } from './sequencing.ts';

/** What a handler was called with; `attempt`: as Pub/Sub counts deliveries, where it does. */
export type Run = { readonly stream: string; readonly seq: number; readonly data: string; readonly attempt: number | undefined };

type ConsumerParts = Partial<Omit<FifoParts, 'store'>> & { readonly subscription: string; readonly handle?: Handler };

/** As long as no test takes: only a test itself sweeps, and the client extends nothing that manual time would end meanwhile. */
const never = { sweepEveryMs: 3_600_000, ackDeadlineSeconds: 600 };

/**
 * Publishers, processes of one consumer that pull, and their operator, over real clients of both services.
 *
 * @param time of the emulator, where a test moves it
 */
export function fifoTopics(databases: Databases<Time>, time?: ManualTime) {
  const system: System = { ...real, clock: time ?? real.clock };
  const clients: PubSub[] = [];
  let topics = 0;
  afterAll(() => Promise.all(clients.map((client) => client.close())));
  const pubsubClient = () => {
    const client = new PubSub({ projectId: 'ptk-fifo-cases', apiEndpoint: databases.emulator.pubsub.address });
    clients.push(client);
    return client;
  };

  return async () => {
    const { sequencer, relay, client, ...parts } = sequencing(databases, system);
    const pubsub = pubsubClient();
    const topic = `stream-${++topics}`;
    await pubsub.createTopic(topic);
    const publisher = pubsubPublisher(pubsub);
    const runs: Run[] = [];
    const received: number[] = [];
    const meter = keptMeter();
    const deadLetters = keptDeadLetters();
    const logged: { level: string; text: string; fields: object }[] = [];
    const at = (level: string) => (fields: object, text: string) => void logged.push({ level, text, fields });
    const log = { ...silentLog, warn: at('warn'), error: at('error') };
    const subscriptions: string[] = [];
    const unacked = () => subscriptions.flatMap((name) => databases.emulator.pubsub.messages(name));
    /** Deliveries that are due come meanwhile. */
    const until = (check: () => unknown, withinMs = 10_000) =>
      vi.waitFor(async () => {
        await time?.advance(0);
        await check();
      }, withinMs);
    const shared = { consumer: 'c', system, log, deadLetters };
    return {
      ...parts,
      system,
      topic,
      pubsub,
      publisher,
      runs,
      /** Deliveries by process. */
      received,
      meter,
      deadLetters,
      logged,
      draft: (key: string, more: Parameters<typeof draft>[1] = {}) => draft(key, { topic, ...more }),
      sequencer: (more: Parameters<typeof sequencer>[0] = {}) => sequencer({ publisher, ...more }),
      relay: (more: Parameters<typeof relay>[0] = {}) => relay({ publisher, ...more }),
      async subscribe(settings: Parameters<ReturnType<PubSub['topic']>['createSubscription']>[1] = {}): Promise<string> {
        const name = `${topic}-${++topics}`;
        await pubsub.topic(topic).createSubscription(name, settings);
        subscriptions.push(pubsub.subscription(name).name);
        return name;
      },
      /** A process of the consumer, with clients of its own; it ends with the test. */
      consumer({ subscription, handle = async () => {}, options, ...more }: ConsumerParts): FifoHandler {
        const fifo = createFifo({
          ...shared,
          store: firestoreFifoStore(client(), system.clock),
          meter,
          options: { startSettleMs: 0, ...options },
          ...more,
        })(async (message, context) => {
          const { attributes, data, deliveryAttempt } = message;
          const stream = attributes['ptk-stream'] ?? '';
          runs.push({ stream, seq: Number(attributes['ptk-seq']), data: Buffer.from(data).toString(), attempt: deliveryAttempt });
          return handle(message, context);
        });
        const process = received.push(0) - 1;
        const minAckDeadline = Duration.from({ seconds: never.ackDeadlineSeconds });
        const pull = startPull({
          subscription: pubsubClient().subscription(subscription, { minAckDeadline }),
          handle: Object.assign((...delivery: Parameters<typeof fifo>) => {
            received[process] = (received[process] ?? 0) + 1;
            return fifo(...delivery);
          }, fifo),
          deadLetters,
          system: real,
          log,
          options: { sweepEveryMs: never.sweepEveryMs, closeTimeoutMs: 0 },
        });
        onTestFinished(() => pull.close());
        return fifo;
      },
      /** An operator; with a sweep what a command makes possible runs at once. */
      commands: (sweep?: FifoHandler['sweep']) =>
        createFifoCommands({ ...shared, store: firestoreFifoStore(client(), system.clock), ...(sweep && { sweep }) }),
      seqs: (stream = 's') => runs.filter((run) => run.stream === stream).map(({ seq }) => seq),
      cursor: async (stream = 's') => (await parts.db.doc(`ptk-cursors/c~${stream}`).get()).data(),
      parked: async () => (await parts.db.collection('ptk-parked').get()).docs.map((document) => Number(document.get('seq'))),
      unacked,
      until,
      /** Then nothing is under way, and time may pass. */
      untilAcked: () => until(() => expect(unacked()).toEqual([])),
    };
  };
}

/** Loses what is published of these numbers on its way, and answers as if it had not. */
export const losing = (publisher: Publisher, ...numbers: readonly number[]): Publisher => ({
  async publish(topic, messages) {
    const kept = messages.filter(({ attributes }) => !numbers.includes(Number(attributes['ptk-seq'])));
    if (kept.length > 0) await publisher.publish(topic, kept);
    return messages.map((_, index) => `lost-${index}`);
  },
});
