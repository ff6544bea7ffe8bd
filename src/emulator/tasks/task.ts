import type { status } from '@grpc/grpc-js';
import { type Seconds, toSeconds } from './instant.ts';
import type { Routing } from './queue-settings.ts';

export type Method = 'HTTP_METHOD_UNSPECIFIED' | 'POST' | 'GET' | 'HEAD' | 'PUT' | 'DELETE' | 'PATCH' | 'OPTIONS';
type Payload<Body> = { readonly httpMethod: Method; readonly headers: Readonly<Record<string, string>>; readonly body: Body };
/** A character a byte: of 100,000 waiting tasks a Buffer each would take more than their bytes. */
export type TaskBytes = string;
export type AppEngineHttpRequest<Body = TaskBytes> = Payload<Body> & {
  readonly relativeUri: string;
  readonly appEngineRouting: Routing | null;
};
export type HttpRequest<Body = TaskBytes> = Payload<Body> & {
  readonly url: string;
  readonly oidcToken?: { readonly serviceAccountEmail: string; readonly audience: string } | null;
  readonly oauthToken?: { readonly serviceAccountEmail: string; readonly scope: string } | null;
};
export type View = 'VIEW_UNSPECIFIED' | 'BASIC' | 'FULL';

/** Where a task goes and what it carries; exactly one of the two. */
export type Target = { readonly appEngineHttpRequest: AppEngineHttpRequest } | { readonly httpRequest: HttpRequest };

export type Attempt = {
  readonly scheduledAtMs: number;
  readonly dispatchedAtMs: number;
  readonly respondedAtMs?: number;
  readonly answer?: { readonly code: status; readonly message: string };
};

export type Task = {
  readonly name: string;
  readonly id: string;
  readonly target: Target;
  readonly createdAtMs: number;
  readonly dispatchDeadlineMs: number;
  dueAtMs: number;
  dispatchCount: number;
  responseCount: number;
  firstAttemptAtMs?: number;
  lastAttempt?: Attempt;
  /** HTTP status of the attempt before, if it was answered. */
  previousResponse?: number | undefined;
};

export const bytesOf = (body: TaskBytes): Buffer => Buffer.from(body, 'latin1');

/** google.cloud.tasks.v2.Task; every view but FULL leaves out the body. */
export function taskMessage(task: Task, view: View) {
  const shown = <Request extends { readonly body: TaskBytes }>(request: Request) => ({
    ...request,
    body: bytesOf(view === 'FULL' ? request.body : ''),
  });
  const target =
    'httpRequest' in task.target
      ? { httpRequest: shown(task.target.httpRequest) }
      : { appEngineHttpRequest: shown(task.target.appEngineHttpRequest) };
  return {
    name: task.name,
    ...target,
    scheduleTime: toSeconds(task.dueAtMs),
    createTime: toSeconds(Math.floor(task.createdAtMs / 1000) * 1000),
    dispatchDeadline: toSeconds(task.dispatchDeadlineMs),
    dispatchCount: task.dispatchCount,
    responseCount: task.responseCount,
    firstAttempt: task.firstAttemptAtMs === undefined ? null : { dispatchTime: toSeconds(task.firstAttemptAtMs) },
    lastAttempt: task.lastAttempt ? attemptMessage(task.lastAttempt) : null,
    view: view === 'FULL' ? 'FULL' : 'BASIC',
  };
}

function attemptMessage({ scheduledAtMs, dispatchedAtMs, respondedAtMs, answer }: Attempt) {
  const time = (ms: number | undefined): Seconds | null => (ms === undefined ? null : toSeconds(ms));
  return {
    scheduleTime: time(scheduledAtMs),
    dispatchTime: time(dispatchedAtMs),
    responseTime: time(respondedAtMs),
    responseStatus: answer ?? null,
  };
}
