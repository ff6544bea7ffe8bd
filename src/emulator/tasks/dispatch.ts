import type { status as Code } from '@grpc/grpc-js';
import type { Access } from '../access-tokens.ts';
import { status } from '../grpc.ts';
import type { TokenClaims } from '../oidc.ts';
import type { QueueName } from './names.ts';
import type { Overload } from './retry.ts';
import { type AppEngineHttpRequest, bytesOf, type HttpRequest, type Method, type Target, type Task } from './task.ts';

export type DispatchRequest = {
  readonly url: string;
  readonly method: Method;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  /** Whom the Authorization header is to speak for, and either to whom, by an OIDC token, or for what, by an access token. */
  readonly tokenFor?: TokenClaims | Access | undefined;
  readonly followsRedirects: boolean;
};

/** `unreached`: no instance got the request; `silent`: one got it and did not answer within the dispatch deadline. */
export type Outcome =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly location?: string | undefined;
      readonly retryAfter?: string | undefined;
    }
  | { readonly kind: 'unreached'; readonly reason: string }
  | { readonly kind: 'silent'; readonly reason: string };

const defaultScope = 'https://www.googleapis.com/auth/cloud-platform';
const appEngineAgent = 'AppEngine-Google; (+http://code.google.com/appengine)';

/** The HTTP request of a task's next attempt; undefined when there is no App Engine app to send it to. */
export function requestOf(task: Task, queue: QueueName, appEngineUrl: string | undefined): DispatchRequest | undefined {
  const { target } = task;
  if ('httpRequest' in target) {
    const { url, httpMethod } = target.httpRequest;
    const { headers, body } = payloadOf(target.httpRequest);
    Object.assign(headers, taskHeaders('x-cloudtasks', task, queue), { 'user-agent': 'Google-Cloud-Tasks' });
    return { url, method: httpMethod, headers, body, tokenFor: tokenFor(target.httpRequest), followsRedirects: true };
  }
  if (appEngineUrl === undefined) return undefined;
  const { relativeUri, httpMethod } = target.appEngineHttpRequest;
  const { headers, body } = payloadOf(target.appEngineHttpRequest);
  Object.assign(headers, taskHeaders('x-appengine', task, queue));
  headers['user-agent'] = headers['user-agent'] ? `${headers['user-agent']} ${appEngineAgent}` : appEngineAgent;
  if (body) headers['content-type'] ??= 'application/octet-stream';
  return { url: appEngineUrl.replace(/\/$/, '') + relativeUri, method: httpMethod, headers, body, followsRedirects: false };
}

function tokenFor({ url, oidcToken, oauthToken }: HttpRequest): DispatchRequest['tokenFor'] {
  if (oidcToken) return { email: oidcToken.serviceAccountEmail, audience: oidcToken.audience || url };
  return oauthToken ? { email: oauthToken.serviceAccountEmail, scope: oauthToken.scope || defaultScope } : undefined;
}

function payloadOf({ headers, body }: AppEngineHttpRequest | HttpRequest) {
  const lowerCase: Record<string, string> = {};
  for (const name in headers) lowerCase[name.toLowerCase()] = headers[name] ?? '';
  return { headers: lowerCase, body: body === '' ? undefined : bytesOf(body) };
}

function taskHeaders(prefix: string, task: Task, queue: QueueName): Record<string, string> {
  const { previousResponse } = task;
  return {
    [`${prefix}-queuename`]: queue.id,
    [`${prefix}-taskname`]: task.id,
    [`${prefix}-taskretrycount`]: String(task.dispatchCount),
    [`${prefix}-taskexecutioncount`]: String(task.responseCount),
    [`${prefix}-tasketa`]: (task.dueAtMs / 1000).toFixed(6),
    ...(previousResponse !== undefined && { [`${prefix}-taskpreviousresponse`]: String(previousResponse) }),
  };
}

/** Where a redirect leads, as browsers go: 303 with GET, and so 301 and 302 of a POST; a token stays with its origin. */
export function redirected(request: DispatchRequest, outcome: Outcome): DispatchRequest | undefined {
  if (!request.followsRedirects || outcome.kind !== 'answered') return undefined;
  const { status: code, location } = outcome;
  if (![301, 302, 303, 307, 308].includes(code) || location === undefined || !URL.canParse(location, request.url)) return undefined;
  const url = new URL(location, request.url);
  if (!/^https?:$/.test(url.protocol)) return undefined;
  const { authorization, ...headers } = request.headers;
  const staysHome = url.origin === new URL(request.url).origin;
  const kept = { ...headers, ...(staysHome && authorization !== undefined && { authorization }) };
  const turnsToGet = code === 303 ? request.method !== 'HEAD' : code < 303 && request.method === 'POST';
  if (!turnsToGet) return { ...request, url: url.href, headers: kept };
  const { 'content-type': _, ...bodiless } = kept as Record<string, string>;
  return { ...request, url: url.href, method: 'GET', headers: bodiless, body: undefined };
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

/** An HTTP target may ask to be left alone for a while; the same answers of an App Engine app are failures like others. */
export function overloadOf(target: Target, outcome: Outcome, nowMs: number): Overload | undefined {
  if (!('httpRequest' in target) || outcome.kind !== 'answered') return undefined;
  return outcome.status === 429 || outcome.status === 503 ? { retryAfterMs: retryAfterMs(outcome.retryAfter, nowMs) } : undefined;
}

/** In seconds or as a date; 0 for what is neither. */
function retryAfterMs(retryAfter: string | undefined, nowMs: number): number {
  if (retryAfter === undefined) return 0;
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter) * 1000;
  return Math.max(Date.parse(retryAfter) - nowMs, 0) || 0;
}
