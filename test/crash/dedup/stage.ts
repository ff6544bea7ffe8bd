import type { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { createClient } from 'redis';
import { startFaultyRedis } from '../../support/redis-faults.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { firestoreClient } from '../../support/targets.ts';
import { startEmulatorProcess } from '../emulator-process.ts';
import { holds } from '../timing.ts';
import { effects } from './consumers.ts';
import { attributesOf, projectId, type RedisFault, type Task, type WorkerPlan } from './plan.ts';
import { openSink, type Sink } from './sink.ts';
import { createStores, type Stores } from './stores.ts';
import { startWorker, type Worker } from './worker-process.ts';

/** The services that all workers use, each a process of its own, and the sink here. */
export type Stage = {
  readonly sink: Sink;
  readonly stores: Stores;
  readonly db: Firestore;
  /** A topic and its subscription, both of this name. */
  open(name: string): Promise<void>;
  publish(topic: string, task: Task, copies?: number): Promise<void>;
  start(name: string, plan: Pick<WorkerPlan, 'subscriptions'> & Partial<WorkerPlan>): Promise<Worker>;
  /** Every effect of the cell, in its sink or its document. */
  made(task: Task): Promise<number>;
  /** What each of these Redis servers held is gone. */
  loseRedis(fault: RedisFault): Promise<void>;
  /** How many messages are without an ack, once there are none or the time is over. */
  backlog(withinMs: number): Promise<number>;
  close(): Promise<void>;
};

export async function openStage(): Promise<Stage> {
  const emulator = await startEmulatorProcess();
  const { addresses } = emulator;
  const [sound, flushed, restarted, failedOver] = await Promise.all([
    startRedisServer(),
    startRedisServer(),
    startRedisServer(),
    startFaultyRedis(),
  ]);
  await failedOver.holdReplication();
  const redisUrls = { sound: sound.url, flushed: flushed.url, restarted: restarted.url, 'failed over': failedOver.url };
  let replacement = restarted;
  const sink = await openSink();
  const pubsub = new PubSub({ projectId, apiEndpoint: addresses.pubsub, emulatorMode: true });
  const db = firestoreClient(addresses.firestore, projectId);
  const stores = createStores(db, redisUrls);
  const workers: Worker[] = [];

  return {
    sink,
    stores,
    db,
    async open(name) {
      await pubsub.createTopic(name);
      await pubsub.createSubscription(name, name, { ackDeadlineSeconds: 10 });
    },
    async publish(topic, task, copies = 1) {
      const message = { data: Buffer.from(task.cell), attributes: attributesOf(task) };
      await Promise.all(Array.from({ length: copies }, () => pubsub.topic(topic).publishMessage(message)));
    },
    async start(name, plan) {
      const defaults = { stops: false, keepsAcks: false, clockAheadMs: 0, sinkUrl: sink.url, redisUrls };
      const env = { PUBSUB_EMULATOR_HOST: addresses.pubsub, FIRESTORE_EMULATOR_HOST: addresses.firestore };
      const worker = await startWorker(name, { ...defaults, ...plan }, env);
      workers.push(worker);
      return worker;
    },
    async made({ cell, setup }) {
      if (setup !== 'inbox') return sink.made(cell);
      const made: unknown = (await db.collection(effects).doc(cell).get()).get('made');
      return typeof made === 'number' ? made : 0;
    },
    async loseRedis(fault) {
      if (fault === 'failed over') return failedOver.failOver();
      if (fault === 'flushed') {
        const client = await createClient({ url: flushed.url }).connect();
        await client.flushAll();
        return client.destroy();
      }
      await restarted.kill();
      // The last of two options of one name counts.
      replacement = await startRedisServer('--port', String(restarted.port));
    },
    async backlog(withinMs) {
      let messages = 0;
      await holds(withinMs, async () => {
        messages = await emulator.backlog();
        return messages === 0;
      });
      return messages;
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.kill()));
      stores.close();
      sink.close();
      await Promise.all([pubsub.close(), db.terminate()]);
      await Promise.all([sound.kill(), flushed.kill(), replacement.kill(), failedOver.close(), emulator.kill()]);
    },
  };
}
