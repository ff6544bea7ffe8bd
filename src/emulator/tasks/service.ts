import type { Server, ServerUnaryCall } from '@grpc/grpc-js';
import type { Faults } from '../faults.ts';
import { addService, invalidArgument, readProtos, serviceOf, unary } from '../grpc.ts';
import { realTime, type Time } from '../time.ts';
import { createQueueMethods } from './queue-methods.ts';
import { createTaskMethods } from './task-methods.ts';

export { type AppEngineFront, createAppEngineFront } from './app-engine-front.ts';

export type TasksEmulator = { register(server: Server): void; close(): void };

export type TasksParts = {
  readonly time: Time;
  readonly faults: Faults;
  /** Where App Engine tasks go; without it each of their attempts fails for lack of an instance. */
  readonly appEngineUrl: string | undefined;
  /** How long the name of a finished or deleted task stays taken. */
  readonly tombstoneMs?: number;
};

const longestRpcMs = 30_000;

/** google.cloud.tasks.v2.CloudTasks: queues, tasks, and the HTTP requests that tasks are. */
export function createTasksEmulator({ tombstoneMs = 3_600_000, ...parts }: TasksParts): TasksEmulator {
  const { find, close, ...queueMethods } = createQueueMethods({ ...parts, tombstoneMs });
  const methods = { ...queueMethods, ...createTaskMethods(find, parts.time) };
  const handlers = Object.entries<(request: never) => unknown>(methods).map(([name, method]) => [
    name,
    unary(`CloudTasks.${name}`, parts.faults, (request: never, call: ServerUnaryCall<never, unknown>) => {
      checkRpcDeadline(call.getDeadline());
      return method(request);
    }),
  ]);
  return {
    register: (server) =>
      addService(
        server,
        serviceOf(readProtos('@google-cloud/tasks', 'protos.json'), 'google.cloud.tasks.v2.CloudTasks'),
        Object.fromEntries(handlers),
      ),
    close,
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
