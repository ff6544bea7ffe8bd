import { invalidArgument, notFound } from '../grpc.ts';
import type { Time } from '../time.ts';
import { parseQueue, parseTask } from './names.ts';
import { createTask, type TaskRequest } from './new-task.ts';
import { type PageRequest, pageOf } from './paging.ts';
import type { Queues } from './queues.ts';
import { taskMessage, type View } from './task.ts';

type Named = { readonly name: string };
type Viewed = { readonly responseView: View };

const largestPage = 1000;

/** The methods of CloudTasks that are about tasks, named as on the wire. */
export function createTaskMethods(queues: Queues, newId: () => string, time: Time) {
  return {
    CreateTask({ parent, task: request, responseView }: { parent: string; task: TaskRequest | null } & Viewed) {
      const queueName = parseQueue(parent);
      if (!request) throw invalidArgument('CreateTaskRequest.task is missing.');
      const id = request.name === '' ? newId() : parseTask(request.name).id;
      if (request.name !== '' && parseTask(request.name).queue !== parent) {
        throw invalidArgument(
          `The queue name from request ("${parent}") must be the same as the queue name in the named task ("${request.name}").`,
        );
      }
      const queue = queues.findForTask(parent);
      const task = createTask(request, id, queueName, queue.settings().appEngineRoutingOverride, time.nowMs());
      queue.checkFree(id);
      const message = taskMessage(task, responseView);
      queue.add(task);
      return message;
    },
    GetTask({ name, responseView }: Named & Viewed) {
      const { queue, id } = parseTask(name);
      return taskMessage(queues.find(queue).find(id), responseView);
    },
    ListTasks({ parent, responseView, ...paging }: { parent: string } & Viewed & PageRequest) {
      const { page, nextPageToken } = pageOf(queues.find(parent).tasks(), paging, largestPage);
      return { tasks: page.map((task) => taskMessage(task, responseView)), nextPageToken };
    },
    DeleteTask({ name }: Named) {
      const { queue, id } = parseTask(name);
      const owner = queues.find(queue);
      owner.remove(owner.find(id, notFound));
      return {};
    },
    RunTask({ name, responseView }: Named & Viewed) {
      const { queue, id } = parseTask(name);
      const owner = queues.find(queue);
      const task = owner.find(id, notFound);
      owner.run(task);
      return taskMessage(task, responseView);
    },
  };
}
