import type { Server, ServerUnaryCall } from '@grpc/grpc-js';
import { addService, type CallParts, invalidArgument, readProtos, serviceOf, unary } from '../grpc.ts';
import { createIdentity, type Identity } from '../oidc.ts';
import { realTime } from '../time.ts';
import { type Inspection, inspect } from './inspection.ts';
import { createQueueMethods } from './queue-methods.ts';
import { createQueues } from './queues.ts';
import { createSender } from './sender.ts';
import { createTaskIds } from './task-ids.ts';
import { createTaskMethods } from './task-methods.ts';

export { type AppEngineFront, createAppEngineFront } from './app-engine-front.ts';
export type { InspectedQueue, PendingTask } from './inspection.ts';

export type TasksEmulator = Inspection & {
  register(server: Server): void;
  /** As on a fresh start: no queue, no task, no name that is taken; what is being dispatched is broken off. */
  reset(): void;
  close(): void;
};

export type TasksOptions = CallParts & {
  /** Where App Engine tasks go; without it each of their attempts fails for lack of an instance. */
  readonly appEngineUrl: string | undefined;
  /** Makes the tokens of HTTP targets; one of its own when absent. */
  readonly identity?: Identity;
  /** How long the name of a finished or deleted task stays taken. */
  readonly tombstoneMs?: number;
};

const longestRpcMs = 30_000;

/** google.cloud.tasks.v2.CloudTasks: queues, tasks, and the HTTP requests that tasks are. */
export function createTasksEmulator({ tombstoneMs = 3_600_000, identity, ...parts }: TasksOptions): TasksEmulator {
  const { time, journal } = parts;
  const sender = createSender({ time, identity: identity ?? createIdentity(time) });
  const queues = createQueues({ ...parts, sender, tombstoneMs });
  const ids = createTaskIds(journal);
  const methods = { ...createQueueMethods(queues), ...createTaskMethods(queues, ids.next, time) };
  const handlers = Object.entries<(request: never) => unknown>(methods).map(([name, method]) => [
    name,
    unary(`CloudTasks.${name}`, parts, (request: never, call: ServerUnaryCall<never, unknown>) => {
      checkRpcDeadline(call.getDeadline());
      return method(request);
    }),
  ]);
  return {
    ...inspect(queues),
    register: (server) =>
      addService(
        server,
        serviceOf(readProtos('@google-cloud/tasks', 'protos.json'), 'google.cloud.tasks.v2.CloudTasks'),
        Object.fromEntries(handlers),
      ),
    reset() {
      queues.reset();
      ids.reset();
    },
    close: queues.close,
  };
}

/** A call's deadline is on the machine's clock, whatever time the emulator keeps. */
const machine = realTime();

/** The service refuses what a lax emulator would let pass until production. */
function checkRpcDeadline(deadline: Date | number): void {
  const leftMs = Number(deadline) - machine.nowMs();
  if (Number.isFinite(leftMs) && leftMs > longestRpcMs) {
    throw invalidArgument(`The request deadline is ${Math.ceil(leftMs)} ms ahead; it must be no more than ${longestRpcMs} ms.`);
  }
}
