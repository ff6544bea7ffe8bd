import { invalidArgument } from '../grpc.ts';

export type QueueName = { readonly name: string; readonly location: string; readonly project: string; readonly id: string };
export type TaskName = { readonly name: string; readonly queue: string; readonly id: string };

const locationPattern = /^projects\/([A-Za-z0-9.:-]+)\/locations\/[A-Za-z0-9-]+$/;
const queuePattern = /^(projects\/([A-Za-z0-9.:-]+)\/locations\/[A-Za-z0-9-]+)\/queues\/([A-Za-z0-9-]{1,100})$/;
const taskPattern = /^(projects\/[A-Za-z0-9.:-]+\/locations\/[A-Za-z0-9-]+\/queues\/[A-Za-z0-9-]{1,100})\/tasks\/([A-Za-z0-9_-]{1,500})$/;

export function parseLocation(name: string): string {
  if (!locationPattern.test(name)) throw invalidArgument(`Invalid location name "${name}": projects/P/locations/L is expected.`);
  return name;
}

export function parseQueue(name: string): QueueName {
  const [, location = '', project = '', id = ''] = queuePattern.exec(name) ?? [];
  if (!id) throw invalidArgument(`Invalid queue name "${name}": projects/P/locations/L/queues/Q is expected, Q of up to 100 [A-Za-z0-9-].`);
  return { name, location, project, id };
}

export function parseTask(name: string): TaskName {
  const [, queue = '', id = ''] = taskPattern.exec(name) ?? [];
  if (!id) throw invalidArgument(`Invalid task name "${name}": QUEUE/tasks/T is expected, T of up to 500 [A-Za-z0-9_-].`);
  return { name, queue, id };
}
