import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { type Message as Delivery, PubSub } from '@google-cloud/pubsub';
import { system } from '../../../src/shared/adapters/system.ts';
import type { VerdictHandler } from '../../../src/shared/ports.ts';
import { startPull } from '../../../src/shared/transports/pull.ts';
import { silentLog } from '../../../src/testing/doubles.ts';
import { createConsumer } from './consumers.ts';
import { type Line, projectId, type Task, taskOf, type WorkerPlan } from './plan.ts';
import type { StopAt } from './stops.ts';
import { createStores } from './stores.ts';

/** A worker process: `worker.ts PLAN`. */
const plan: WorkerPlan = JSON.parse(process.argv[2] ?? '');
const say = (line: Line) => console.log(JSON.stringify(line));
const fail = (error: unknown) => {
  say({ said: 'failed', reason: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  process.exit(1);
};
process.on('uncaughtException', fail);
if (plan.clockAheadMs > 0) setClockAhead(plan.clockAheadMs);

const db = new Firestore({ projectId });
const parts = {
  db,
  stores: createStores(db, plan.redisUrls),
  system,
  async effect(cell: string) {
    const response = await fetch(plan.sinkUrl, { method: 'POST', body: cell });
    await response.body?.cancel();
  },
  countZombie: (cell: string) => say({ said: 'zombie', cell }),
};

const clientSendsAcksWithinMs = 1_000;
const never = new Promise<never>(() => {});
const stopOf =
  ({ cell, stop }: Task): StopAt =>
  async (point, write) => {
    if (!plan.stops) return;
    if (point === stop) {
      say({ said: 'stopped', cell, ...(write && { write }) });
      await never;
    }
    // The handler of a run that is to be renewed must go on.
    if (point === 'before the effect' && stop.startsWith('renewal')) await never;
  };

const consumers = new Map<string, Promise<VerdictHandler>>();
const consumerOf = (task: Task): Promise<VerdictHandler> => {
  const known = consumers.get(task.cell) ?? createConsumer(parts, task, stopOf(task));
  consumers.set(task.cell, known);
  return known;
};
const deliveries = new Map<string, Delivery>();

const handle: VerdictHandler = async (message, context) => {
  const task = taskOf(message);
  const stopAt = stopOf(task);
  await stopAt('received');
  if (task.without === 'the ack after the handler') {
    deliveries.get(message.messageId)?.ack();
    await pause(clientSendsAcksWithinMs);
  }
  const verdict = await (await consumerOf(task))(message, context);
  say({ said: 'verdict', cell: task.cell, kind: verdict.kind, reason: verdict.reason });
  await stopAt('verdict known');
  return verdict;
};

const pubsub = new PubSub({ projectId });
for (const name of plan.subscriptions) {
  const subscription = pubsub.subscription(name, {
    streamingOptions: { maxStreams: 1 },
    ...(plan.keepsAcks && { batching: { maxMilliseconds: 60_000 } }),
  });
  subscription.on('message', (delivery: Delivery) => {
    deliveries.set(delivery.id, delivery);
    const acked = delivery.ack.bind(delivery);
    delivery.ack = () => {
      acked();
      void stopOf(delivery.attributes as unknown as Task)('ack called');
    };
  });
  const deadLetters = { publish: async () => fail('there is nothing to dead-letter') };
  startPull({ subscription, handle, deadLetters, system, log: silentLog });
}
say({ said: 'ready', pid: process.pid });

/** As on a machine whose clock is wrong: every `Date` of this process. */
function setClockAhead(aheadMs: number): void {
  const RealDate = Date;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length > 0 ? args : [target.now() + aheadMs], newTarget),
    get: (target, name, receiver) => (name === 'now' ? () => target.now() + aheadMs : Reflect.get(target, name, receiver)),
  });
}
