import type { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import type { FaultRule } from '../../../src/emulator/faults.ts';
import { pubsubPublisher } from '../../../src/shared/adapters/pubsub.ts';
import { cursorKeyOf } from '../../../src/shared/fifo/store.ts';
import { firestoreClient } from '../../support/targets.ts';
import { startEmulatorProcess } from '../emulator-process.ts';
import { type Cell, mayRepeat } from './cells.ts';
import { attributesOf, consumerOf, leases, lossy, type Part, projectId, type Task, type WorkerPlan } from './plan.ts';
import type { SendingParts } from './sending.ts';
import { openSink, type Sink } from './sink.ts';
import { startWorker, type Worker } from './worker-process.ts';

/** The services that all workers use, in a process of their own, and the sink here. */
export type Stage = {
  readonly sink: Sink;
  readonly sending: SendingParts;
  /** A topic and its subscription, both of this name. */
  open(name: string, settings?: object): Promise<void>;
  publish(topic: string, task: Task, part: Part): Promise<void>;
  /** Every message of a topic, which is made if there is none, as it comes, by a subscription of its own. */
  record(topic: string): Promise<readonly Recorded[]>;
  start(name: string, plan: Partial<WorkerPlan>): Promise<Worker>;
  pushTo(subscriptions: readonly string[], worker: Worker): Promise<void>;
  /** As `kill -9`: numbers with an effect of it that no cursor knows may come again. */
  kill(worker: Worker, cells: readonly Cell[]): Promise<void>;
  /** One that is not to be a kill. */
  end(worker: Worker): Promise<void>;
  lastOf(cell: Cell): Promise<{ last: number; rev: number }>;
  setFaults(rules: readonly FaultRule[]): Promise<void>;
  kills(): number;
  /** How often deliveries ended in which way. */
  verdicts(): string;
  /** How many messages are without an ack. */
  backlog(): Promise<number>;
  close(): Promise<void>;
};

export type Recorded = { readonly messageId: string; readonly attributes: Readonly<Record<string, string>> };

/** Answers that are lost before or after the call was applied, now and then, of commits and on topics of that name. */
export const lostAnswers: readonly FaultRule[] = (['fail-before', 'answer-lost'] as const).flatMap((kind) => [
  { kind, rpc: 'Firestore.Commit', probability: 0.03 },
  { kind, rpc: 'Publisher.Publish', resource: lossy, probability: 0.05 },
]);

const nobody = {
  publishers: [],
  relays: [],
  outboxes: [],
  subscriptions: [],
  keepsAcks: false,
  takesPushes: false,
  sweeps: [],
  leaseMs: leases.long,
};

export async function openStage(): Promise<Stage> {
  const emulator = await startEmulatorProcess();
  const { addresses } = emulator;
  const sink = await openSink();
  const pubsub = new PubSub({ projectId, apiEndpoint: addresses.pubsub, emulatorMode: true });
  const db: Firestore = firestoreClient(addresses.firestore, projectId);
  const workers: Worker[] = [];
  let kills = 0;
  const cursors = (cells: readonly Cell[]) =>
    db.getAll(...cells.map((cell) => db.doc(`ptk-cursors/${cursorKeyOf(consumerOf(cell), cell.cell)}`)));

  return {
    sink,
    sending: { db, publisher: pubsubPublisher(pubsub) },
    async open(name, settings = {}) {
      await pubsub.createTopic(name);
      await pubsub.createSubscription(name, name, { ackDeadlineSeconds: 10, ...settings });
    },
    async publish(topic, task, part) {
      await pubsub.topic(topic).publishMessage({ data: Buffer.from(String(part.seq)), attributes: attributesOf(task, part) });
    },
    async record(topic) {
      const recorded: Recorded[] = [];
      const [found] = await pubsub.topic(topic).get({ autoCreate: true });
      const [subscription] = await found.createSubscription(`recorded-${topic}`);
      subscription.on('message', (message) => {
        recorded.push({ messageId: message.id, attributes: message.attributes });
        message.ack();
      });
      return recorded;
    },
    async start(name, plan) {
      const env = { PUBSUB_EMULATOR_HOST: addresses.pubsub, FIRESTORE_EMULATOR_HOST: addresses.firestore };
      const worker = await startWorker({ ...nobody, mode: 'work', ...plan, name, sinkUrl: sink.url }, env);
      workers.push(worker);
      return worker;
    },
    async pushTo(subscriptions, { pushUrl }) {
      await Promise.all(subscriptions.map((name) => pubsub.subscription(name).modifyPushConfig({ pushEndpoint: pushUrl })));
    },
    async kill(worker, cells) {
      await worker.kill();
      kills += 1;
      sink.gone(worker.name);
      const found = cells.length > 0 ? await cursors(cells) : [];
      cells.forEach((cell, index) => {
        const last = found[index]?.get('last') ?? 0;
        const begun = new Set(sink.begins(cell.cell).flatMap((begin) => (begin.worker === worker.name ? [begin.seq] : [])));
        const uncommitted = [...begun].filter((seq) => seq > last).sort((a, b) => a - b);
        for (const seq of uncommitted.slice(0, cell.span)) mayRepeat(cell, seq);
      });
    },
    end: (worker) => worker.kill(),
    async lastOf(cell) {
      const [found] = await cursors([cell]);
      return { last: found?.get('last') ?? 0, rev: found?.get('rev') ?? 0 };
    },
    setFaults: emulator.setFaults,
    kills: () => kills,
    verdicts() {
      const said = workers.flatMap(({ lines }) =>
        lines.flatMap((line) => (line.said === 'verdict' ? [`${line.kind} ${line.reason}`] : [])),
      );
      return [...Map.groupBy(said, (verdict) => verdict)].map(([verdict, all]) => `${verdict} ${all.length}`).join(', ');
    },
    backlog: emulator.backlog,
    async close() {
      await Promise.all(workers.map((worker) => worker.kill()));
      sink.close();
      await Promise.all([pubsub.close(), db.terminate()]);
      await emulator.kill();
    },
  };
}
