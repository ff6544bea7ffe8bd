import { CloudTasksClient } from '@google-cloud/tasks';
import { credentials } from '@grpc/grpc-js';
import { ToolkitError } from '../errors.ts';
import type { Scheduler, System, Task } from '../ports.ts';
import { jittered, pause } from '../waiting.ts';

/** gRPC codes. Cloud Tasks never retries CreateTask by itself, so a try that may pass is repeated here, under the same name. */
const grpcCode = { invalidArgument: 3, alreadyExists: 6 } as const;
const mayPass = new Set<unknown>([1, 2, 4, 8, 10, 13, 14]);
const tries = 4;
const retryPauseMs = 200;
/** The service refuses a deadline more than 30 s ahead (`docs/facts.md` C.1). */
const callTimeoutMs = 10_000;

/** @param emulatorHost `host:port`, the value of `CLOUD_TASKS_EMULATOR_HOST`; the client itself knows no such variable */
export function cloudTasksClient(projectId: string, emulatorHost: string | undefined): CloudTasksClient {
  if (!emulatorHost) return new CloudTasksClient({ projectId });
  const [apiEndpoint = '', port] = emulatorHost.split(':');
  return new CloudTasksClient({ projectId, apiEndpoint, port: Number(port), sslCreds: credentials.createInsecure() });
}

export type CloudTasksParts = {
  readonly client: CloudTasksClient;
  /** Full names; a task's id chooses one, always the same. */
  readonly queues: readonly string[];
  /** App Engine service that releases; the default service when absent. */
  readonly service?: string | undefined;
  readonly system: System;
};

/** Tasks that call `POST /tasks/release` of an App Engine service. */
export function cloudTasksScheduler({ client, queues, service, system }: CloudTasksParts): Scheduler {
  const create = async (task: Task) => {
    const queue = queues[Number.parseInt(task.id.slice(0, 8), 16) % queues.length] ?? '';
    const seconds = Math.floor(task.scheduledForMs / 1000);
    await client.createTask(
      {
        parent: queue,
        task: {
          name: `${queue}/tasks/${task.id}`,
          scheduleTime: { seconds, nanos: (task.scheduledForMs - seconds * 1000) * 1_000_000 },
          appEngineHttpRequest: {
            httpMethod: 'POST',
            relativeUri: '/tasks/release',
            headers: { 'Content-Type': 'application/json' },
            body: task.body,
            ...(service && { appEngineRouting: { service } }),
          },
        },
      },
      { timeout: callTimeoutMs },
    );
  };
  return {
    async schedule(task) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await create(task);
        } catch (error) {
          const { code, message } = error as { code?: unknown; message: string };
          if (code === grpcCode.alreadyExists) return;
          if (code === grpcCode.invalidArgument) {
            throw new ToolkitError(
              /too large/i.test(message) ? 'MESSAGE_TOO_LARGE' : 'REFUSED',
              `Cloud Tasks refused the task: ${message}`,
              error,
            );
          }
          if (!mayPass.has(code) || attempt === tries) throw new ToolkitError('SERVICE_UNAVAILABLE', `Cloud Tasks: ${message}`, error);
          await pause(system.clock, jittered(system, retryPauseMs * 2 ** attempt));
        }
      }
    },
  };
}
