import type { Queues } from './queues.ts';
import { bytesOf, type Task } from './task.ts';

export type InspectedQueue = {
  readonly name: string;
  readonly state: 'RUNNING' | 'PAUSED';
  readonly tasks: number;
  /** Requests under way. */
  readonly dispatching: number;
};

export type PendingTask = {
  readonly name: string;
  /** Of an HTTP target; of an App Engine app the part behind the host. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** When the next attempt is due, or was when it is under way. */
  readonly dueAtMs: number;
  readonly dispatchCount: number;
  readonly responseCount: number;
};

export type Inspection = {
  queues(): InspectedQueue[];
  /** Tasks that have not succeeded yet, also those under way, of one queue or of all; the next to be due first. */
  pending(queue?: string): PendingTask[];
  /** How many requests are under way. */
  dispatching(): number;
};

export function inspect(queues: Queues): Inspection {
  const list = () =>
    [...queues.all()].map((queue): InspectedQueue => {
      const { name, state } = queue.message();
      return { name, state, tasks: [...queue.tasks()].length, dispatching: queue.dispatching() };
    });
  return {
    queues: list,
    pending: (queue) =>
      (queue === undefined ? [...queues.all()] : [queues.find(queue)])
        .flatMap((each) => [...each.tasks()])
        .sort((a, b) => a.dueAtMs - b.dueAtMs)
        .map(pendingTask),
    dispatching: () => list().reduce((sum, { dispatching }) => sum + dispatching, 0),
  };
}

function pendingTask({ name, target, dueAtMs, dispatchCount, responseCount }: Task): PendingTask {
  const isHttp = 'httpRequest' in target;
  const { headers, body } = isHttp ? target.httpRequest : target.appEngineHttpRequest;
  const url = isHttp ? target.httpRequest.url : target.appEngineHttpRequest.relativeUri;
  return { name, url, headers, body: bytesOf(body), dueAtMs, dispatchCount, responseCount };
}
