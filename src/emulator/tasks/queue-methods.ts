import { alreadyExists, invalidArgument, unimplemented } from '../grpc.ts';
import { parseLocation, parseQueue } from './names.ts';
import { type PageRequest, pageOf } from './paging.ts';
import { maskSettings, type QueueRequest, resolveSettings } from './queue-settings.ts';
import type { Queues } from './queues.ts';

type Named = { readonly name: string };

const largestPage = 9800;

/** The methods of CloudTasks that are about queues, named as on the wire. */
export function createQueueMethods(queues: Queues) {
  const changed = (name: string, change: 'purge' | 'pause' | 'resume') => {
    const queue = queues.find(name);
    queue[change]();
    return queue.message();
  };
  return {
    CreateQueue({ parent, queue }: { parent: string; queue: QueueRequest | null }) {
      parseLocation(parent);
      if (!queue) throw invalidArgument('CreateQueueRequest.queue is missing.');
      if (parseQueue(queue.name).location !== parent) throw invalidArgument(`The queue "${queue.name}" does not lie in ${parent}.`);
      if (queues.get(queue.name)) throw alreadyExists(`Queue already exists: ${queue.name}`);
      return queues.create(queue.name, resolveSettings(queue)).message();
    },
    UpdateQueue({ queue, updateMask }: { queue: QueueRequest | null; updateMask: { paths: string[] } | null }) {
      if (!queue) throw invalidArgument('UpdateQueueRequest.queue is missing.');
      const current = queues.get(queue.name);
      if (!current) return queues.create(queue.name, resolveSettings(queue)).message();
      current.configure(maskSettings(current.settings(), queue, updateMask?.paths ?? []));
      return current.message();
    },
    GetQueue: ({ name }: Named) => queues.find(name).message(),
    ListQueues({ parent, filter, ...paging }: { parent: string; filter: string } & PageRequest) {
      parseLocation(parent);
      if (filter) throw unimplemented('ListQueuesRequest.filter');
      const here = [...queues.all()].filter(({ queueName }) => queueName.location === parent);
      const { page, nextPageToken } = pageOf(here, paging, largestPage);
      return { queues: page.map((queue) => queue.message()), nextPageToken };
    },
    DeleteQueue({ name }: Named) {
      queues.delete(name);
      return {};
    },
    PurgeQueue: ({ name }: Named) => changed(name, 'purge'),
    PauseQueue: ({ name }: Named) => changed(name, 'pause'),
    ResumeQueue: ({ name }: Named) => changed(name, 'resume'),
  };
}
