import { CloudTasksClient } from '@google-cloud/tasks';
import { credentials } from '@grpc/grpc-js';
import { ToolkitError, textOf } from '../errors.ts';
import type { QueueState, Scheduler, System, Task, TaskName } from '../ports.ts';
import { jittered, pause } from '../waiting.ts';

/** gRPC codes. Cloud Tasks never retries CreateTask by itself, so a try that may pass is repeated here, under the same name. */
const grpcCode = { invalidArgument: 3, notFound: 5, alreadyExists: 6, failedPrecondition: 9 } as const;
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

/** Who is called: `POST /tasks/release` of an App Engine service, the default one when absent, or of a URL, with an OIDC token for it. */
export type ReleaseTarget = { readonly service?: string | undefined } | { readonly url: string; readonly account: string };

export type CloudTasksParts = {
  readonly client: CloudTasksClient;
  readonly release: ReleaseTarget;
  /** For tasks that publish by themselves: Pub/Sub's REST address, and the service account in whose name they do. */
  readonly publishing?: { readonly url: string; readonly account: string };
  readonly system: System;
};

const pubsubScope = 'https://www.googleapis.com/auth/pubsub';

/** Tasks of Cloud Tasks. The client is the caller's: connected, and closed by the caller. */
export function cloudTasksScheduler({ client, release, publishing, system }: CloudTasksParts): Scheduler {
  const json = { 'Content-Type': 'application/json' };
  const targetOf = ({ body, publishTo }: Task) => {
    const request = { httpMethod: 'POST' as const, headers: json, body };
    if (publishTo !== undefined) {
      if (!publishing) throw new ToolkitError('REFUSED', `no account is set in whose name a task may publish to ${publishTo}`);
      const oauthToken = { serviceAccountEmail: publishing.account, scope: pubsubScope };
      return { httpRequest: { ...request, url: `${publishing.url}/v1/${publishTo}:publish`, oauthToken } };
    }
    if ('url' in release) {
      const oidcToken = { serviceAccountEmail: release.account, audience: release.url };
      return { httpRequest: { ...request, url: `${release.url}/tasks/release`, oidcToken } };
    }
    const routing = release.service ? { appEngineRouting: { service: release.service } } : {};
    return { appEngineHttpRequest: { ...request, relativeUri: '/tasks/release', ...routing } };
  };
  const create = async (task: Task) => {
    const seconds = Math.floor(task.scheduledForMs / 1000);
    const scheduleTime = { seconds, nanos: (task.scheduledForMs - seconds * 1000) * 1_000_000 };
    const request = { parent: task.queue, task: { name: fullName(task), scheduleTime, ...targetOf(task) } };
    await client.createTask(request, { timeout: callTimeoutMs });
  };
  return {
    async schedule(task) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await create(task);
        } catch (error) {
          const code = codeOf(error);
          if (code === grpcCode.alreadyExists) return;
          if (code === grpcCode.invalidArgument) {
            const isTooLarge = /too large/i.test(textOf(error));
            throw new ToolkitError(isTooLarge ? 'MESSAGE_TOO_LARGE' : 'REFUSED', `Cloud Tasks refused the task: ${textOf(error)}`, error);
          }
          if (!mayPass.has(code) || attempt === tries) throw unavailable(error);
          await pause(system.clock, jittered(system, retryPauseMs * 2 ** attempt));
        }
      }
    },
    async remove(name) {
      try {
        await client.deleteTask({ name: fullName(name) }, { timeout: callTimeoutMs });
      } catch (error) {
        if (!isGone(error)) throw unavailable(error);
      }
    },
    async exists(name) {
      try {
        await client.getTask({ name: fullName(name) }, { timeout: callTimeoutMs });
        return true;
      } catch (error) {
        if (isGone(error)) return false;
        throw unavailable(error);
      }
    },
    async stateOf(queue) {
      try {
        const [{ state }] = await client.getQueue({ name: queue }, { timeout: callTimeoutMs });
        return queueStates[String(state)] ?? 'running';
      } catch (error) {
        if (isGone(error)) return 'missing';
        throw unavailable(error);
      }
    },
  };
}

const queueStates: Readonly<Record<string, QueueState>> = { RUNNING: 'running', PAUSED: 'paused', DISABLED: 'disabled' };

const fullName = ({ queue, id }: TaskName): string => `${queue}/tasks/${id}`;
const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;

/** A task that has run is a failed precondition for a while, and then not found (`docs/facts.md` C.3). */
const isGone = (error: unknown): boolean => codeOf(error) === grpcCode.notFound || codeOf(error) === grpcCode.failedPrecondition;

const unavailable = (error: unknown): ToolkitError =>
  error instanceof ToolkitError ? error : new ToolkitError('SERVICE_UNAVAILABLE', `Cloud Tasks: ${textOf(error)}`, error);
