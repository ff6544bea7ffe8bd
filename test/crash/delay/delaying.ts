import type { Firestore } from '@google-cloud/firestore';
import type { CloudTasksClient } from '@google-cloud/tasks';
import { createApp } from '../../../appengine/app.ts';
import { calendar } from '../../../src/shared/adapters/calendar.ts';
import { cloudTasksScheduler } from '../../../src/shared/adapters/cloud-tasks.ts';
import { firestoreRecordStore } from '../../../src/shared/adapters/firestore.ts';
import { firestoreDelayLedger, firestorePayloadStore } from '../../../src/shared/adapters/firestore-delays.ts';
import { system } from '../../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../../src/shared/dedup/decide.ts';
import { createDelay } from '../../../src/shared/delay/delay.ts';
import { createDelays } from '../../../src/shared/delay/delays.ts';
import { createRelease } from '../../../src/shared/delay/release.ts';
import { createRepair, type Repaired } from '../../../src/shared/delay/repair.ts';
import type { Publisher, RecordStore, VerdictHandler } from '../../../src/shared/ports.ts';
import { deadLetterTopic } from '../../../src/shared/transports/dead-letters.ts';
import { createPush, type PushAnswer, type PushRequest } from '../../../src/shared/transports/push.ts';
import { silentLog } from '../../../src/testing/doubles.ts';
import { createQueue } from '../queue.ts';
import { startWalk } from '../steps.ts';
import { unprotectedAck, unprotectedDedup, unprotectedLedger, unprotectedNames } from './controls.ts';
import { type Call, type CallAnswer, dataOf, type Line, leaseMs, oldMs, queues, type Task, topics, type WorkerPlan } from './plan.ts';

export type DelayingParts = Pick<WorkerPlan, 'mode'> & {
  readonly db: Firestore;
  readonly publisher: Publisher;
  readonly tasks: CloudTasksClient;
  /** For what goes on after its stop. */
  readonly goesOn: Promise<void>;
  readonly say: (line: Line) => void;
};

/** The function, the release, the client and the repair, with the same protections. */
export type Delaying = {
  push(task: Task, request: PushRequest): Promise<PushAnswer>;
  readonly app: ReturnType<typeof createApp>;
  call(call: Call): Promise<CallAnswer>;
  repair(): Promise<Repaired>;
};

/** A call may wait until its process is killed. */
const options = { leaseMs, storeTimeoutMs: 60_000 };

export function createDelaying({ db, publisher, tasks, mode, goesOn, say }: DelayingParts, given: Task): Delaying {
  const { cell, role, without } = given;
  const stop = mode === 'walk' ? 'nowhere' : given.stop;
  const stopped = () => say({ said: 'stopped', cell, role });
  const walk = mode === 'work' ? undefined : startWalk(stop, stopped, given.goesOn ? goesOn : undefined);
  const through = <Port extends object>(port: Port, name?: string) => (walk ? walk.through(port, name) : port);
  const prefix = given.isUnrepaired ? 'unrepaired-' : '';
  const named = unprotectedNames(cloudTasksScheduler({ client: tasks, release: {}, system }), without);
  const dedup = firestoreRecordStore<DedupRecord>(db, system.clock, 'ptk-dedup');
  const deadLetters = deadLetterTopic(publisher, topics.dead);
  const parts = {
    scheduler: unprotectedAck(through(named, 'task'), without),
    queues,
    ledger: through(unprotectedLedger(firestoreDelayLedger(db, system.clock, prefix), without), 'entry'),
    payloads: through(firestorePayloadStore(db, system.clock, prefix), 'payload'),
    publisher: through(publisher),
    finalTopic: topics.plain,
    targets: [topics.lossy],
    calendar,
    system,
    log: silentLog,
    options,
  };
  const ended = () => walk && say({ said: 'ended', cell, role, steps: walk.steps });

  const handle = createDelay(parts);
  const acked = new Set<string>();
  const handled =
    ({ isOld, count }: Task): VerdictHandler =>
    async (message, context) => {
      await walk?.step('received');
      const { publishTimeMs } = message;
      const seen = isOld && publishTimeMs !== undefined ? { ...message, publishTimeMs: publishTimeMs - oldMs } : message;
      const verdict = await handle(seen, context);
      await walk?.step('verdict known');
      if (verdict.kind === 'ack') acked.add(message.messageId);
      if (acked.size === count) ended();
      return verdict;
    };

  const release = createRelease({ ...parts, store: unprotectedDedup(withRenewals(through(dedup, 'record'), dedup), without), deadLetters });
  const released: typeof release = async (task) => {
    await walk?.step('received');
    const outcome = await release(task);
    await walk?.step('outcome known');
    if (outcome.kind !== 'busy') ended();
    return outcome.kind === 'busy' && without === '429 for a busy release' ? { kind: 'ended' } : outcome;
  };

  const delays = createDelays(parts);
  const answered = async (call: Call): Promise<CallAnswer> => {
    const { id, key } = call;
    switch (call.kind) {
      case 'schedule': {
        const draft = { key, data: dataOf(key, false), attributes: { cell }, target: call.topic };
        const { dueAtMs: at, everyMs } = call;
        return delays.schedule(draft, { id, at, ...(everyMs !== undefined && { everyMs }) });
      }
      case 'reschedule':
        return delays.reschedule(id, call.dueAtMs);
      case 'cancel':
        return delays.cancel(id);
      case 'get':
        return (await delays.get(id)) ?? {};
    }
  };

  // One at a time, or steps of two would be counted as those of one.
  const [pushes, dispatches] = [createQueue(), createQueue()];
  return {
    push(task, request) {
      const push = createPush({ handle: handled(task), deadLetters, log: silentLog });
      const { attributes = {} } = (request.body as { message?: { attributes?: Record<string, string> } }).message ?? {};
      return walk ? pushes(Number(attributes.index), () => push(request)) : push(request);
    },
    app: createApp({ release: walk ? (task) => dispatches(0, () => released(task)) : released, queues, log: silentLog }),
    async call(call) {
      try {
        const answer = await answered(call);
        await walk?.step('answer known');
        return answer;
      } finally {
        // An error is an end too: the caller knows nothing then, as after a death.
        ended();
      }
    },
    repair: createRepair(parts),
  };
}

/** A run is renewed beside its way: that is no step of it. */
const withRenewals = (store: RecordStore<DedupRecord>, renewed: RecordStore<DedupRecord>): RecordStore<DedupRecord> => ({
  ...store,
  put: (key, record, expected, keepMs) =>
    (record.state === 'running' && expected !== 'absent' ? renewed : store).put(key, record, expected, keepMs),
});
