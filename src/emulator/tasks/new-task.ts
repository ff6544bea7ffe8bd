import { validateHeaderName, validateHeaderValue } from 'node:http';
import { invalidArgument } from '../grpc.ts';
import { type Seconds, toMs } from './instant.ts';
import { type QueueName, quoted } from './names.ts';
import type { Routing } from './queue-settings.ts';
import type { AppEngineHttpRequest, HttpRequest, Method, Target, Task } from './task.ts';

/** google.cloud.tasks.v2.Task as a client sends it. */
export type TaskRequest = {
  readonly name: string;
  readonly appEngineHttpRequest?: AppEngineHttpRequest<Buffer> | null;
  readonly httpRequest?: HttpRequest<Buffer> | null;
  readonly scheduleTime: Seconds | null;
  readonly dispatchDeadline: Seconds | null;
};

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const furthestScheduleMs = 720 * hour;
const appEngineLimits = { bytes: 100 * 1024, deadlineMs: 10 * minute, longestDeadlineMs: 24 * hour + 15 * second, bodies: ['POST', 'PUT'] };
const httpLimits = { bytes: 1024 * 1024, deadlineMs: 10 * minute, longestDeadlineMs: 30 * minute, bodies: ['POST', 'PUT', 'PATCH'] };
const methods: readonly Method[] = ['POST', 'GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'];
const headersLimitBytes = 80 * 1024;
const urlLimit = 2083;

/** Checks a new task and fills in its defaults. */
export function createTask(request: TaskRequest, id: string, queue: QueueName, queueRouting: Routing | null, nowMs: number): Task {
  const limits = request.httpRequest ? httpLimits : appEngineLimits;
  const dueAtMs = request.scheduleTime ? Math.max(toMs('schedule_time', request.scheduleTime), nowMs) : nowMs;
  if (dueAtMs - nowMs > furthestScheduleMs) {
    const wanted = new Date(Math.min(dueAtMs, 8.64e15)).toISOString();
    throw invalidArgument(
      `The Task.scheduleTime, ${wanted}, is too far in the future. Schedule time must be no more than 720h in the future.`,
    );
  }
  const deadlineMs = Math.trunc(request.dispatchDeadline ? toMs('dispatch_deadline', request.dispatchDeadline) : 0);
  if (deadlineMs !== 0 && !(deadlineMs >= 15 * second && deadlineMs <= limits.longestDeadlineMs)) {
    throw invalidArgument(
      `Task.dispatchDeadline must lie between 15s and ${limits.longestDeadlineMs / 1000}s for this target: ${deadlineMs / 1000}s`,
    );
  }
  const name = `${queue.name}/tasks/${id}`;
  return {
    name,
    // The end of the name, and not of the request's: one text for both.
    id: name.slice(-id.length),
    target: checkTarget(request, queue, queueRouting),
    createdAtMs: nowMs,
    dispatchDeadlineMs: deadlineMs || limits.deadlineMs,
    dueAtMs,
    dispatchCount: 0,
    responseCount: 0,
  };
}

function checkTarget({ appEngineHttpRequest, httpRequest }: TaskRequest, queue: QueueName, queueRouting: Routing | null): Target {
  if (httpRequest) {
    if (httpRequest.oidcToken && !httpRequest.oidcToken.serviceAccountEmail)
      throw invalidArgument('HttpRequest.oidc_token.service_account_email is missing.');
    if (httpRequest.oauthToken && !httpRequest.oauthToken.serviceAccountEmail)
      throw invalidArgument('HttpRequest.oauth_token.service_account_email is missing.');
    const { url } = httpRequest;
    if (!/^https?:\/\//i.test(url) || !URL.canParse(url) || url.length > urlLimit) {
      throw invalidArgument(
        `HttpRequest.url must be an http or https URL of at most ${urlLimit} characters; it has ${url.length}: ${quoted(url)}`,
      );
    }
    const { httpMethod, headers, body } = checkPayload(
      httpRequest,
      url,
      httpLimits,
      /^(host|content-length|user-agent|x-(google|appengine|cloudtasks)-.*)$/,
    );
    const { oidcToken = null, oauthToken = null } = httpRequest;
    return { httpRequest: { url, httpMethod, headers, body, oidcToken: shared(oidcToken), oauthToken: shared(oauthToken) } };
  }
  if (!appEngineHttpRequest) throw invalidArgument('Task must hold an app_engine_http_request or an http_request.');
  const relativeUri = appEngineHttpRequest.relativeUri || '/';
  if (
    !relativeUri.startsWith('/') ||
    /\s/.test(relativeUri) ||
    !URL.canParse(`http://app${relativeUri}`) ||
    relativeUri.length > urlLimit
  ) {
    throw invalidArgument(
      `AppEngineHttpRequest.relativeUri must begin with "/", hold no spaces and have at most ${urlLimit} characters; it has ${relativeUri.length}: ${quoted(relativeUri)}`,
    );
  }
  const dropped = /^(host|content-length|x-(google|appengine)-.*)$/;
  const { httpMethod, headers, body } = checkPayload(appEngineHttpRequest, relativeUri, appEngineLimits, dropped);
  const appEngineRouting = routed(queueRouting ?? appEngineHttpRequest.appEngineRouting, queue.project);
  return { appEngineHttpRequest: { relativeUri: shared(relativeUri), httpMethod, headers, body, appEngineRouting } };
}

/** Connection headers belong to the connection; the service makes its own. */
const connectionHeader = /^(connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|proxy-.*)$/;

function checkPayload(
  payload: AppEngineHttpRequest<Buffer> | HttpRequest<Buffer>,
  url: string,
  limits: typeof httpLimits,
  dropped: RegExp,
): Pick<HttpRequest, 'httpMethod' | 'headers' | 'body'> {
  const httpMethod: Method = payload.httpMethod === 'HTTP_METHOD_UNSPECIFIED' ? 'POST' : payload.httpMethod;
  if (!methods.includes(httpMethod)) throw invalidArgument(`There is no HTTP method with the number ${httpMethod}.`);
  if (payload.body.length > 0 && !limits.bodies.includes(httpMethod)) {
    throw invalidArgument(`HTTP request body is allowed only with ${limits.bodies.join(', ')}: ${httpMethod}`);
  }
  const kept = Object.entries(payload.headers).filter(
    ([name]) => !dropped.test(name.toLowerCase()) && !connectionHeader.test(name.toLowerCase()),
  );
  for (const [name, value] of kept) checkHeader(name, value);
  const headerBytes = kept.reduce((bytes, [name, value]) => bytes + Buffer.byteLength(name) + Buffer.byteLength(value), 0);
  if (headerBytes >= headersLimitBytes)
    throw invalidArgument(`HTTP request headers have ${headerBytes} bytes, the limit is ${headersLimitBytes}`);
  const bytes = payload.body.length + headerBytes + Buffer.byteLength(url);
  if (bytes > limits.bytes) throw invalidArgument(`Task size too large: ${bytes} bytes, the limit is ${limits.bytes}`);
  return { httpMethod, headers: shared(Object.fromEntries(kept)), body: payload.body.toString('latin1') };
}

function checkHeader(name: string, value: string): void {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw invalidArgument(`HTTP request headers hold one that is not valid: ${quoted(`${name}: ${value}`)}`);
  }
}

/** The host that App Engine would route to; the emulator knows one app and sends every task there. */
function routed(routing: Routing | null, project: string): Routing {
  const { service = '', version = '', instance = '' } = routing ?? {};
  const host = [instance, version, service, `${project}.appspot.com`].filter((part) => part !== '').join('.');
  return shared({ service, version, instance, host });
}

const mostShared = 1_000;
/** What is longer is hardly ever the same, and would be kept for nobody. */
const longestShared = 1_000;
const sharedValues = new Map<string, unknown>();

/** Tasks of one client have the same headers, path and routing: each is kept once for all of them. */
function shared<Value>(value: Value): Value {
  const text = JSON.stringify(value);
  if (text.length > longestShared) return value;
  if (!sharedValues.has(text)) {
    if (sharedValues.size >= mostShared) sharedValues.clear();
    sharedValues.set(text, value);
  }
  return sharedValues.get(text) as Value;
}
