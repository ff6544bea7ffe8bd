import { invalidArgument } from '../grpc.ts';

export type QueueName = { readonly name: string; readonly location: string; readonly project: string; readonly id: string };
export type TaskName = { readonly name: string; readonly queue: string; readonly id: string };

const location = 'projects/([A-Za-z0-9.:-]{1,100})/locations/[A-Za-z0-9-]{1,100}';
const locationPattern = new RegExp(`^${location}$`);
const queuePattern = new RegExp(`^(${location})/queues/([A-Za-z0-9-]{1,100})$`);
const taskPattern = new RegExp(`^(${location}/queues/[A-Za-z0-9-]{1,100})/tasks/([A-Za-z0-9_-]{1,500})$`);

export function parseLocation(name: string): string {
  if (!locationPattern.test(name)) throw invalidArgument(`Invalid location name ${quoted(name)}: projects/P/locations/L is expected.`);
  return name;
}

export function parseQueue(name: string): QueueName {
  const [, location = '', project = '', id = ''] = queuePattern.exec(name) ?? [];
  if (!id) {
    throw invalidArgument(`Invalid queue name ${quoted(name)}: projects/P/locations/L/queues/Q is expected, Q of up to 100 [A-Za-z0-9-].`);
  }
  return { name, location, project, id };
}

export function parseTask(name: string): TaskName {
  const [, queue = '', , id = ''] = taskPattern.exec(name) ?? [];
  if (!id) throw invalidArgument(`Invalid task name ${quoted(name)}: QUEUE/tasks/T is expected, T of up to 500 [A-Za-z0-9_-].`);
  return { name, queue, id };
}

const longestQuote = 200;

/** What a client sent, for a message: an answer that is too long to be read would itself be an error, and another one. */
export function quoted(value: string): string {
  return JSON.stringify(value.length > longestQuote ? `${value.slice(0, longestQuote)}…` : value);
}
