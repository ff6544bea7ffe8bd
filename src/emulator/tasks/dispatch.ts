import type { status as Code } from '@grpc/grpc-js';
import { status } from '../grpc.ts';
import type { Time } from '../time.ts';
import type { QueueName } from './names.ts';
import type { Task } from './task.ts';

export type DispatchRequest = { readonly url: string; readonly method: string; readonly headers: Headers; readonly body: Buffer | null };

/** `unreached`: no instance got the request; `silent`: one got it and did not answer within the dispatch deadline. */
export type Outcome =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'unreached'; readonly reason: string }
  | { readonly kind: 'silent'; readonly reason: string };

/** The HTTP request of a task's next attempt; undefined when there is no App Engine app to send it to. */
export function requestOf(task: Task, queue: QueueName, appEngineUrl: string | undefined): DispatchRequest | undefined {
  const { target } = task;
  const isHttp = 'httpRequest' in target;
  const payload = isHttp ? target.httpRequest : target.appEngineHttpRequest;
  const headers = new Headers(payload.headers);
  const prefix = isHttp ? 'X-CloudTasks' : 'X-AppEngine';
  headers.set(`${prefix}-QueueName`, queue.id);
  headers.set(`${prefix}-TaskName`, task.id);
  headers.set(`${prefix}-TaskRetryCount`, String(task.dispatchCount));
  headers.set(`${prefix}-TaskExecutionCount`, String(task.responseCount));
  headers.set(`${prefix}-TaskETA`, (task.dueAtMs / 1000).toFixed(6));
  if (task.previousResponse !== undefined) headers.set(`${prefix}-TaskPreviousResponse`, String(task.previousResponse));
  const body = payload.body.length > 0 ? payload.body : null;
  if (isHttp) {
    headers.set('User-Agent', 'Google-Cloud-Tasks');
    return { url: target.httpRequest.url, method: payload.httpMethod, headers, body };
  }
  if (appEngineUrl === undefined) return undefined;
  const agents = [headers.get('User-Agent'), 'AppEngine-Google; (+http://code.google.com/appengine)'];
  headers.set('User-Agent', agents.filter(Boolean).join(' '));
  if (body && !headers.has('Content-Type')) headers.set('Content-Type', 'application/octet-stream');
  return { url: appEngineUrl.replace(/\/$/, '') + target.appEngineHttpRequest.relativeUri, method: payload.httpMethod, headers, body };
}

/** Sends one attempt and waits for the whole answer; never throws. */
export async function send(request: DispatchRequest, deadlineMs: number, time: Time, closing: AbortSignal): Promise<Outcome> {
  const late = new AbortController();
  const cancel = time.after(deadlineMs, () => late.abort());
  const { url, body, ...rest } = request;
  try {
    const response = await fetch(url, {
      ...rest,
      body: body && new Uint8Array(body),
      redirect: 'manual',
      signal: AbortSignal.any([late.signal, closing]),
    });
    await response.arrayBuffer();
    return { kind: 'answered', status: response.status };
  } catch (error) {
    if (late.signal.aborted) return { kind: 'silent', reason: `no answer within ${deadlineMs} ms` };
    return { kind: 'unreached', reason: error instanceof Error ? error.message : String(error) };
  } finally {
    cancel();
  }
}

const codes: Readonly<Record<number, Code>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.NOT_FOUND,
  409: status.ABORTED,
  429: status.RESOURCE_EXHAUSTED,
  500: status.INTERNAL,
  501: status.UNIMPLEMENTED,
  503: status.UNAVAILABLE,
  504: status.DEADLINE_EXCEEDED,
};

/** Only 200 to 299 is a success. */
export function answerOf(outcome: Outcome): { code: Code; message: string } {
  if (outcome.kind === 'silent') return { code: status.DEADLINE_EXCEEDED, message: outcome.reason };
  if (outcome.kind === 'unreached') return { code: status.UNAVAILABLE, message: outcome.reason };
  if (outcome.status >= 200 && outcome.status <= 299) return { code: status.OK, message: '' };
  return { code: codes[outcome.status] ?? status.UNKNOWN, message: `HTTP status code ${outcome.status}` };
}
