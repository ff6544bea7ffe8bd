import { failedPrecondition, notFound } from '../grpc.ts';
import { parseQueue } from './names.ts';
import { createQueue, type Queue, type QueueParts, type QueueState, queueKind, taskKind } from './queue.ts';
import type { QueueSettings } from './queue-settings.ts';
import type { Task } from './task.ts';
import { createTombstones } from './tombstones.ts';

export type Queues = ReturnType<typeof createQueues>;

/** The name of a deleted queue stays taken this long. */
const queueTombstoneMs = 7 * 86_400_000;

/** All queues, as the journal had them, and the names of queues and tasks that are gone. */
export function createQueues({ tombstoneMs, ...parts }: Omit<QueueParts, 'goneTasks'> & { readonly tombstoneMs: number }) {
  const { time, journal, sender } = parts;
  const queues = new Map<string, Queue>();
  const goneQueues = createTombstones('tasks gone queues', queueTombstoneMs, journal);
  const goneTasks = createTombstones('tasks gone tasks', tombstoneMs, journal);

  const open = (name: string, state: QueueState): Queue => {
    const queue = createQueue(parseQueue(name), state, { ...parts, goneTasks });
    queues.set(name, queue);
    return queue;
  };
  const get = (name: string): Queue | undefined => queues.get(parseQueue(name).name);
  const find = (name: string): Queue => {
    const queue = get(name);
    if (!queue) throw notFound(`Queue does not exist: ${name}`);
    return queue;
  };
  for (const [name, state] of journal.load<QueueState>(queueKind)) open(name, state);
  for (const [name, task] of journal.load<Task>(taskKind)) queues.get(name.slice(0, name.lastIndexOf('/tasks/')))?.restore(task);

  return {
    get,
    find,
    /** Tells a queue deleted of late from one that never was, which only CreateTask does. */
    findForTask(name: string): Queue {
      if (goneQueues.has(name, time.nowMs())) throw failedPrecondition(`The queue no longer exists: ${name}`);
      return find(name);
    },
    all: () => queues.values(),
    create(name: string, settings: QueueSettings): Queue {
      if (goneQueues.has(name, time.nowMs())) {
        throw failedPrecondition(`The queue cannot be created because a queue with this name existed too recently: ${name}`);
      }
      const queue = open(name, { settings, paused: false });
      queue.note();
      return queue;
    },
    delete(name: string): void {
      find(name).purge();
      queues.delete(name);
      journal.delete(queueKind, name);
      goneQueues.add(name, time.nowMs());
    },
    /** No queue, no task, no name that is taken. */
    reset(): void {
      for (const queue of queues.values()) {
        queue.stop();
        for (const task of queue.tasks()) journal.delete(taskKind, task.name);
        journal.delete(queueKind, queue.name);
      }
      queues.clear();
      goneQueues.clear();
      goneTasks.clear();
      sender.abort();
    },
    close(): void {
      for (const queue of queues.values()) queue.stop();
      sender.close();
    },
  };
}
