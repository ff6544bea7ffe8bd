import { createDelay, type DelayParts } from '../../src/shared/delay/delay.ts';
import { createDelays, type DelaysParts } from '../../src/shared/delay/delays.ts';
import { createRelease, type ReleaseParts } from '../../src/shared/delay/release.ts';
import { createRepair } from '../../src/shared/delay/repair.ts';
import type { Calendar, OutgoingMessage, Publisher, QueueState, Scheduler, Task, TaskName } from '../../src/shared/index.ts';
import { keptDeadLetters, memoryDelayLedger, memoryPayloadStore, memoryRecordStore, silentLog } from '../../src/testing/doubles.ts';
import { manualSystem } from './manual-system.ts';

export const queues = ['projects/p/locations/l/queues/q'];

/** `answer`: published, and the caller hears this error. */
export type Failure = { publish?: Error | undefined; answer?: Error | undefined; schedule?: Error | undefined };

/** A queue that keeps one task of a name, as Cloud Tasks does, and remembers the names that it had. */
export function keptTasks(failure: Failure) {
  const tasks = new Map<string, Task>();
  const used = new Set<string>();
  const state: { of: QueueState } = { of: 'running' };
  const nameOf = ({ queue, id }: TaskName) => `${queue}/tasks/${id}`;
  const scheduler: Scheduler = {
    async schedule(task) {
      if (failure.schedule) throw failure.schedule;
      if (used.has(nameOf(task))) return;
      used.add(nameOf(task));
      tasks.set(nameOf(task), task);
    },
    remove: async (name) => void tasks.delete(nameOf(name)),
    exists: async (name) => tasks.has(nameOf(name)),
    stateOf: async () => state.of,
  };
  return { tasks, scheduler, state, names: used };
}

/** Every `everyMs` alone. */
export const plainCalendar: Calendar = {
  next: (recurrence, afterMs, anchorMs) => {
    if (!('everyMs' in recurrence)) return undefined;
    const { everyMs } = recurrence;
    return anchorMs + (Math.floor((afterMs - anchorMs) / everyMs) + 1) * everyMs;
  },
};

/** The delay layer in this process: a final topic, a queue, a ledger, and time that a test moves. */
export function setUpDelay(given: Partial<DelayParts> = {}, release: Partial<ReleaseParts> = {}, client: Partial<DelaysParts> = {}) {
  const failure: Failure = {};
  const topics: [string, OutgoingMessage][] = [];
  const publisher: Publisher = {
    publish: async (topic, messages) => {
      if (failure.publish) throw failure.publish;
      for (const message of messages) topics.push([topic, message]);
      if (failure.answer) throw failure.answer;
      return messages.map(() => `out-${topics.length - 1}`);
    },
  };
  const { tasks, scheduler, state, names } = keptTasks(failure);
  const system = manualSystem();
  const deadLetters = keptDeadLetters();
  const ledger = memoryDelayLedger(system.clock);
  const payloads = memoryPayloadStore();
  const store = memoryRecordStore<never>(system.clock);
  const parts = { publisher, scheduler, queues, finalTopic: 'final', ledger, payloads, system, log: silentLog, calendar: plainCalendar };
  const releasing = createRelease({ ...parts, store, deadLetters, ...release });
  const dispatched = (task: Task, attempt = 1) => releasing({ id: task.id, queue: 'q', body: Buffer.from(task.body).toString(), attempt });
  return {
    ...{ failure, topics, tasks, names, state, system, deadLetters, ledger, payloads, scheduler, parts },
    bodies: () => [...tasks.values()].map((task) => JSON.parse(Buffer.from(task.body).toString())),
    delay: createDelay({ ...parts, ...given }),
    delays: createDelays({ ...parts, ...client }),
    repair: createRepair(parts),
    releasing,
    /** Dispatches a task, which is gone after a success. */
    async release(task: Task | undefined, attempt = 1) {
      if (!task) throw new Error('there is no such task');
      const outcome = await dispatched(task, attempt);
      if (outcome.kind !== 'busy') tasks.delete(`${task.queue}/tasks/${task.id}`);
      return outcome;
    },
    /** Dispatches a task and keeps it: the answer is lost. */
    dispatched,
    task: (index: number) => [...tasks.values()][index],
  };
}
