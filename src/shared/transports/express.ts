import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { type ErrorCode, errorCodeOf, ToolkitError, textOf } from '../errors.ts';
import type { Context, Log } from '../ports.ts';
import { type Answer, type HeldResponse, holdResponse } from './held-response.ts';
import { type HttpRequest, type Identity, identityOf, type Problem, readKey } from './idempotency-request.ts';

export type { HttpRequest } from './idempotency-request.ts';

export type IdempotencyKeyParts<R extends HttpRequest = HttpRequest> = {
  /** Made by `createIdempotent`. */
  readonly idempotent: (key: string, work: (context: Context) => Promise<unknown>, fingerprint?: string) => Promise<unknown>;
  readonly log: Log;
  /**
   * Whose key it is, as the id of a tenant or a user. It must not be left out where several share the service: who guesses a key
   * of another would be answered with the other's response.
   */
  readonly scopeOf?: (request: R) => string;
  /** A longer body is not kept: default 32,768, which fits the default of `DEDUP_MAX_RESULT_BYTES`. */
  readonly maxBodyBytes?: number;
  /** Methods that need the header; all others pass untouched. Default POST and PATCH. */
  readonly requiredOn?: readonly string[];
};

export type HttpResponse = ServerResponse & { readonly locals: Record<string, unknown> };
export type Middleware<R extends HttpRequest> = (request: R, response: HttpResponse, next: (error?: unknown) => void) => void;

/** The first response, as its record keeps it. `body`: base64; null where it was too long. */
type Kept = { readonly status: number; readonly headers: OutgoingHttpHeaders; readonly body: string | null };

const mostBodyBytes = 600_000;
/** What a replay repeats beside the body; nothing of the connection, and no cookie. */
const keptHeaders = new Set([
  'content-type',
  'content-encoding',
  'content-language',
  'content-disposition',
  'content-location',
  'location',
  'etag',
  'last-modified',
  'link',
]);
/** These say "the same request, later", and so nothing about its outcome. */
const notNow: readonly number[] = [408, 425, 429];

const inProgress: Problem = {
  status: 409,
  title: 'A request is in progress',
  detail: 'A request with this Idempotency-Key is not done yet.',
};
const notRecorded: Problem = {
  status: 503,
  title: 'Outcome not recorded',
  detail: 'The outcome of a request cannot be recorded at the moment; try again with the same Idempotency-Key.',
};

/** What the client is told of an error; the error's own text is for the log. */
const problems: Readonly<Partial<Record<ErrorCode, Problem>>> = {
  IN_PROGRESS: inProgress,
  LEASE_LOST: inProgress,
  OUTCOME_UNKNOWN: { status: 409, title: 'Outcome unknown', detail: 'Whether the first request had its effects is not known yet.' },
  KEY_CONFLICT: { status: 422, title: 'Idempotency-Key is already used', detail: 'Another request was made with this Idempotency-Key.' },
  REFUSED: { status: 422, title: 'Idempotency-Key is used up', detail: 'Too many requests with this Idempotency-Key have failed.' },
  STORE_UNAVAILABLE: notRecorded,
  RECORD_UNREADABLE: notRecorded,
};

/** The work of a request whose response says nothing about its outcome: the key is freed. */
class NotKept extends Error {
  readonly answer: Answer;
  constructor(answer: Answer) {
    super(`the response is ${answer.status}`);
    this.answer = answer;
  }
}

/**
 * Express middleware for the `Idempotency-Key` header (draft-ietf-httpapi-idempotency-key-header): the handlers after it run once
 * per key, and whoever asks again gets the first response with `Idempotency-Replayed: true`. A key belongs to its method, route and
 * scope. It stands behind the body parser and whatever decides who may ask.
 *
 * Problems (`application/problem+json`): 400 no valid key, 409 in progress (with `Retry-After`), 410 done but its response was not
 * kept, 415 a body that no parser reads, 422 the key of another request, 503 the store is down and nothing was run, or was not recorded.
 *
 * A response is held in memory, whole, until its record is durable, so a handler must end it even if its client is gone. From status
 * 500, and with 408, 425 and 429, it is not kept and the next request runs. A body over `maxBodyBytes` is sent and not kept: a replay
 * has the status, no body, and `Idempotency-Body: not-kept`. `response.locals.idempotency` is the run's `Context`.
 * @throws INVALID_SETTINGS
 */
export function idempotencyKey<R extends HttpRequest = HttpRequest>(parts: IdempotencyKeyParts<R>): Middleware<R> {
  const { idempotent, log, scopeOf } = parts;
  const { maxBodyBytes, methods } = checked(parts);

  const keptOf = (answer: Answer, key: string): Kept => {
    if (answer.status >= 500 || notNow.includes(answer.status)) throw new NotKept(answer);
    const { status, body } = answer;
    const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => keptHeaders.has(name)));
    if (body.length <= maxBodyBytes) return { status, headers, body: body.toString('base64') };
    log.warn({ key, bodyBytes: body.length, limitBytes: maxBodyBytes }, 'body of the response not kept');
    const aboutNoBody = Object.entries(headers).filter(([name]) => !/^content-(?!location)/.test(name));
    return { status, headers: Object.fromEntries(aboutNoBody), body: null };
  };

  const run = async ({ key, fingerprint }: Identity, response: HttpResponse, next: () => void): Promise<void> => {
    let held: HeldResponse | undefined;
    let answer: Answer | undefined;
    try {
      const first = await idempotent(
        key,
        async (context) => {
          held = holdResponse(response);
          response.locals.idempotency = context;
          next();
          answer = await held.answered;
          return keptOf(answer, key);
        },
        fingerprint,
      );
      if (!held || !answer) return sendReplay(response, first);
      held.letGo(answer.headers);
      send(response, answer);
    } catch (error) {
      if (error instanceof NotKept) {
        held?.letGo(error.answer.headers);
        return send(response, error.answer);
      }
      held?.letGo();
      const code = errorCodeOf(error);
      const problem = code && problems[code];
      if (!problem) throw error;
      if (problem.status === 503) log.error({ key, reason: textOf(error), wasRun: held !== undefined }, 'request not recorded');
      sendProblem(response, { ...problem, retryAfterMs: (error as ToolkitError).retryAfterMs });
    }
  };

  return (request, response, next) => {
    if (!methods.has(request.method ?? '')) return next();
    const headerKey = readKey(request.headersDistinct['idempotency-key']);
    if (typeof headerKey !== 'string') return sendProblem(response, headerKey);
    const identity = identityOf(request, headerKey, scopeOf ? scopeOf(request) : null);
    if ('status' in identity) return sendProblem(response, identity);
    run(identity, response, next).catch(next);
  };
}

function checked<R extends HttpRequest>({ idempotent, maxBodyBytes = 32_768, requiredOn = ['POST', 'PATCH'] }: IdempotencyKeyParts<R>) {
  const refuse = (message: string) => new ToolkitError('INVALID_SETTINGS', message);
  if (typeof idempotent !== 'function') throw refuse('idempotent is no function; createIdempotent makes it');
  if (!Number.isInteger(maxBodyBytes) || maxBodyBytes < 0 || maxBodyBytes > mostBodyBytes)
    throw refuse(`maxBodyBytes is ${maxBodyBytes}; it must be a whole number from 0 to ${mostBodyBytes}`);
  const notUpper = requiredOn.find((method) => !/^[A-Z]+$/.test(method));
  if (notUpper !== undefined) throw refuse(`requiredOn has ${JSON.stringify(notUpper)}; it must be a method in capitals, as "POST"`);
  return { maxBodyBytes, methods: new Set(requiredOn) };
}

function send(response: ServerResponse, { status, statusMessage, body }: Omit<Answer, 'headers'>): void {
  response.statusCode = status;
  response.statusMessage = statusMessage;
  if (!response.destroyed) response.end(body);
}

const gone: Problem = {
  status: 410,
  title: 'The response is gone',
  detail: 'The first request with this Idempotency-Key is done, and its response was not kept.',
};

function sendReplay(response: ServerResponse, first: unknown): void {
  const { status, headers, body } = (first ?? {}) as Partial<Kept>;
  if (status === undefined || headers === undefined || body === undefined) {
    sendProblem(response, gone);
    return;
  }
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) response.setHeader(name, value);
  response.setHeader('Idempotency-Replayed', 'true');
  if (body === null) response.setHeader('Idempotency-Body', 'not-kept');
  send(response, { status, statusMessage: '', body: Buffer.from(body ?? '', 'base64') });
}

function sendProblem(response: ServerResponse, { status, title, detail, retryAfterMs }: Problem): void {
  response.setHeader('Content-Type', 'application/problem+json');
  if (retryAfterMs !== undefined) response.setHeader('Retry-After', String(Math.ceil(retryAfterMs / 1000)));
  send(response, { status, statusMessage: '', body: Buffer.from(JSON.stringify({ title, status, detail })) });
}
