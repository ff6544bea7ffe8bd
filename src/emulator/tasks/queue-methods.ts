import { alreadyExists, failedPrecondition, invalidArgument, notFound, unimplemented } from '../grpc.ts';
import { parseLocation, parseQueue } from './names.ts';
import { type PageRequest, pageOf } from './paging.ts';
import { createQueue, type Queue, type QueueParts } from './queue.ts';
import { maskSettings, type QueueRequest, resolveSettings } from './queue-settings.ts';
import { createTombstones } from './tombstones.ts';

type Named = { readonly name: string };

/** The name of a deleted queue stays taken this long. */
const queueTombstoneMs = 7 * 86_400_000;
const largestPage = 9800;

/** The methods of CloudTasks that are about queues, named as on the wire. */
export function createQueueMethods(parts: Omit<QueueParts, 'closing'>) {
  const { time } = parts;
  const queues = new Map<string, Queue>();
  const closing = new AbortController();
  const deleted = createTombstones(queueTombstoneMs);

  const checkNotDeleted = (name: string) => {
    if (deleted.has(name, time.nowMs())) {
      throw failedPrecondition(`The queue cannot be created because a queue with this name existed too recently: ${name}`);
    }
  };
  const create = (request: QueueRequest): Queue => {
    checkNotDeleted(request.name);
    const queue = createQueue(parseQueue(request.name), resolveSettings(request), { ...parts, closing: closing.signal });
    queues.set(queue.name, queue);
    return queue;
  };
  const find = (name: string): Queue => {
    const queue = queues.get(parseQueue(name).name);
    if (!queue) throw notFound(`Queue does not exist: ${name}`);
    return queue;
  };

  return {
    /** For CreateTask, which tells a queue deleted of late from one that never was. */
    find(name: string, forCreate = false): Queue {
      if (forCreate && deleted.has(name, time.nowMs())) throw failedPrecondition(`The queue no longer exists: ${name}`);
      return find(name);
    },
    CreateQueue({ parent, queue }: { parent: string; queue: QueueRequest | null }) {
      parseLocation(parent);
      if (!queue) throw invalidArgument('CreateQueueRequest.queue is missing.');
      if (parseQueue(queue.name).location !== parent) throw invalidArgument(`The queue "${queue.name}" does not lie in ${parent}.`);
      if (queues.has(queue.name)) throw alreadyExists(`Queue already exists: ${queue.name}`);
      return create(queue).message();
    },
    UpdateQueue({ queue, updateMask }: { queue: QueueRequest | null; updateMask: { paths: string[] } | null }) {
      if (!queue) throw invalidArgument('UpdateQueueRequest.queue is missing.');
      const current = queues.get(parseQueue(queue.name).name);
      if (!current) return create(queue).message();
      current.configure(maskSettings(current.settings(), queue, updateMask?.paths ?? []));
      return current.message();
    },
    GetQueue: ({ name }: Named) => find(name).message(),
    ListQueues({ parent, filter, ...paging }: { parent: string; filter: string } & PageRequest) {
      parseLocation(parent);
      if (filter) throw unimplemented('ListQueuesRequest.filter');
      const here = [...queues.values()].filter(({ queueName }) => queueName.location === parent);
      const { page, nextPageToken } = pageOf(here, paging, largestPage);
      return { queues: page.map((queue) => queue.message()), nextPageToken };
    },
    DeleteQueue({ name }: Named) {
      find(name).purge();
      queues.delete(name);
      deleted.add(name, time.nowMs());
      return {};
    },
    PurgeQueue: ({ name }: Named) => changed(find(name), 'purge'),
    PauseQueue: ({ name }: Named) => changed(find(name), 'pause'),
    ResumeQueue: ({ name }: Named) => changed(find(name), 'resume'),
    close(): void {
      closing.abort();
      for (const queue of queues.values()) queue.purge();
    },
  };
}

function changed(queue: Queue, change: 'purge' | 'pause' | 'resume') {
  queue[change]();
  return queue.message();
}
