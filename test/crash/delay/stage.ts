import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { PubSub } from '@google-cloud/pubsub';
import type { FaultRule } from '../../../src/emulator/faults.ts';
import { cloudTasksClient } from '../../../src/shared/adapters/cloud-tasks.ts';
import { startEmulatorProcess } from '../emulator-process.ts';
import { holds } from '../timing.ts';
import { type Front, openFront } from './front.ts';
import { cellOfKey, location, projectId, queues, topics, type WorkerPlan } from './plan.ts';
import { startWorker, type Worker } from './worker-process.ts';

/** The services that all workers use, in a process of their own; their time stands still until it is moved here. */
export type Stage = {
  readonly front: Front;
  nowMs(): Promise<number>;
  /** Time goes on to an instant, and stops 1 ms before it for what comes too early; what is due then is dispatched at once. */
  leapTo(atMs: number): Promise<void>;
  /** Time goes on by small steps until it is so. @throws Error when it is not */
  until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void>;
  /** Time goes on by small steps, as long as that. */
  pass(ms: number): Promise<void>;
  /** No message is without an ack and no task is due, or has a time at all. */
  isQuiet(): Promise<boolean>;
  isEmpty(): Promise<boolean>;
  /** A topic whose messages are pushed. */
  openSource(name: string): Promise<void>;
  publish(source: string, data: Buffer, attributes: Record<string, string>): Promise<void>;
  /** What was published of a cell, in any order. */
  published(cell: string): readonly Published[];
  start(name: string, mode: WorkerPlan['mode']): Promise<Worker>;
  kill(worker: Worker): Promise<void>;
  setFaults(rules: readonly FaultRule[]): Promise<void>;
  kills(): number;
  /** How often which fault has happened. */
  faulted(): Promise<string>;
  close(): Promise<void>;
};

export type Published = {
  readonly messageId: string;
  readonly topic: string;
  readonly key: string;
  readonly atMs: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly sha256: string;
};

/** Answers that are lost before or after the call was applied, now and then; and tasks that are sent twice at once. */
export const faults: readonly FaultRule[] = [
  ...(['fail-before', 'answer-lost'] as const).flatMap((kind): FaultRule[] => [
    { kind, rpc: 'Firestore.Commit', probability: 0.03 },
    { kind, rpc: 'CloudTasks.CreateTask', probability: 0.1 },
    { kind, rpc: 'Publisher.Publish', resource: topics.lossy, probability: 0.1 },
  ]),
  { kind: 'double-dispatch', probability: 0.2 },
];

const longestWaitMs = 120_000;
const stepMs = 200;
/** While something is under way, time here passes no faster than the workers' own. */
const busyStepMs = 50;
/** Longer than anything here is held. */
const ackDeadlineSeconds = 600;
const shortBackoff = { minBackoff: { nanos: 100_000_000 }, maxBackoff: { seconds: 1 } };
const shortPushBackoff = { minimumBackoff: { nanos: 100_000_000 }, maximumBackoff: { seconds: 1 } };

export const digestOf = (data: Buffer): string => createHash('sha256').update(data).digest('hex');

export async function openStage(): Promise<Stage> {
  const front = await openFront();
  const emulator = await startEmulatorProcess('--time', 'manual', '--app-engine-url', front.url);
  const { addresses } = emulator;
  const pubsub = new PubSub({ projectId, apiEndpoint: addresses.pubsub, emulatorMode: true });
  const tasks = cloudTasksClient(projectId, addresses.tasks);
  const published = new Map<string, Map<string, Published>>();
  const workers: Worker[] = [];
  let kills = 0;

  const record = async (topic: string) => {
    const [created] = await pubsub.createTopic(topic);
    const [subscription] = await created.createSubscription(`recorded-${topic.slice(topic.lastIndexOf('/') + 1)}`);
    subscription.on('message', (message) => {
      const key = message.attributes['ptk-key'] ?? '';
      const ofCell = published.get(cellOfKey(key)) ?? new Map<string, Published>();
      published.set(cellOfKey(key), ofCell);
      // By its id, since a message may be delivered twice.
      ofCell.set(`${topic} ${message.id}`, {
        messageId: message.id,
        topic,
        key,
        atMs: message.publishTime.getTime(),
        attributes: message.attributes,
        sha256: digestOf(message.data),
      });
      message.ack();
    });
  };
  await Promise.all(Object.values(topics).map(record));
  await Promise.all(queues.map((name) => tasks.createQueue({ parent: location, queue: { name, retryConfig: shortBackoff } })));

  const nowMs = async () => Date.parse(((await emulator.ask('GET', '/time')) as { now: string }).now);
  const advance = (advanceMs: number) => emulator.ask('POST', '/time', { advanceMs });
  /** Of all queues at once, so that what is due is not dispatched one after the other. */
  const leap = async (ms: number) => {
    await Promise.all(queues.map((name) => tasks.pauseQueue({ name })));
    // A lease must not end under whoever is alive.
    if (!(await holds(longestWaitMs, front.isIdle))) throw new Error(`requests are under way after ${longestWaitMs} ms`);
    await advance(ms);
    await Promise.all(queues.map((name) => tasks.resumeQueue({ name })));
  };
  const dueTimes = async (): Promise<readonly number[]> => {
    const listed = await Promise.all(queues.map((parent) => tasks.listTasks({ parent })));
    return listed.flatMap(([found]) =>
      found.map(({ scheduleTime }) => Number(scheduleTime?.seconds) * 1_000 + Number(scheduleTime?.nanos) / 1e6),
    );
  };

  return {
    front,
    nowMs,
    async leapTo(atMs) {
      await leap(Math.max(atMs - 1 - (await nowMs()), 0));
      await leap(Math.max(atMs - (await nowMs()), 0));
    },
    async until(what, isSo) {
      const isNow = async () => {
        if (await isSo()) return true;
        await advance(front.isIdle() ? stepMs : busyStepMs);
        return false;
      };
      if (!(await holds(longestWaitMs, isNow))) throw new Error(`${what}: not within ${longestWaitMs} ms`);
    },
    async pass(ms) {
      for (let left = ms; left > 0; left -= busyStepMs) {
        await advance(busyStepMs);
        await pause(busyStepMs);
      }
    },
    async isQuiet() {
      if (!front.isIdle()) return false;
      const [now, times, messages] = await Promise.all([nowMs(), dueTimes(), emulator.backlog()]);
      return messages === 0 && times.every((time) => time > now);
    },
    async isEmpty() {
      const [times, messages] = await Promise.all([dueTimes(), emulator.backlog()]);
      return messages === 0 && times.length === 0;
    },
    async openSource(name) {
      await pubsub.createTopic(name);
      const pushConfig = { pushEndpoint: `${front.url}/push` };
      await pubsub.createSubscription(name, name, { ackDeadlineSeconds, pushConfig, retryPolicy: shortPushBackoff });
    },
    async publish(source, data, attributes) {
      await pubsub.topic(source).publishMessage({ data, attributes });
    },
    published: (cell) => [...(published.get(cell)?.values() ?? [])],
    async start(name, mode) {
      const env = {
        PUBSUB_EMULATOR_HOST: addresses.pubsub,
        FIRESTORE_EMULATOR_HOST: addresses.firestore,
        CLOUD_TASKS_EMULATOR_HOST: addresses.tasks,
      };
      const worker = await startWorker({ name, mode }, env);
      workers.push(worker);
      return worker;
    },
    async kill(worker) {
      front.killed(worker);
      await worker.kill();
      kills += 1;
    },
    setFaults: emulator.setFaults,
    kills: () => kills,
    async faulted() {
      const { counts } = (await emulator.ask('GET', '/faults')) as { counts: Record<string, number> };
      return Object.entries(counts)
        .flatMap(([kind, count]) => (count > 0 ? [`${kind} ${count}`] : []))
        .join(', ');
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.kill()));
      front.close();
      await Promise.all([pubsub.close(), tasks.close()]);
      await emulator.kill();
    },
  };
}
