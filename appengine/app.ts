import express, { type Express, type Request, type Response } from 'express';
import type { createRelease } from '../src/shared/delay/release.ts';
import { errorCodeOf, textOf } from '../src/shared/errors.ts';
import type { Log, Meter } from '../src/shared/ports.ts';

export type AppParts = {
  readonly release: ReturnType<typeof createRelease>;
  /** Full names: tasks of other queues release nothing. */
  readonly queues: readonly string[];
  /** For tasks that come with an OIDC token: resolves where it is one for us. Without it only App Engine's own header counts. */
  readonly verify?: ((token: string) => Promise<void>) | undefined;
  /** Makes connections before the first task needs them. */
  readonly warmUp?: () => Promise<unknown>;
  readonly log: Log;
  readonly meter?: Meter;
};

/** Larger than any task. */
const bodyLimit = '2mb';

type Headers = { readonly queue: string | undefined; readonly task: string; readonly retries: string | undefined };

/** Cloud Tasks names its headers by the kind of target. */
const headersOf = (request: Request, kind: 'appengine' | 'cloudtasks'): Headers => ({
  queue: request.get(`x-${kind}-queuename`),
  task: request.get(`x-${kind}-taskname`) ?? '',
  retries: request.get(`x-${kind}-taskretrycount`),
});

/**
 * Releases tasks. App Engine strips `X-AppEngine-*` from outside calls, so the queue's name proves where a call comes from; elsewhere an OIDC
 * token does. 200: the task is done. 429: another dispatch is at it, and the queue need not slow down. 503: a service is down; any other
 * failure is 500; and the queue tries again.
 */
export function createApp({ release, queues, verify, warmUp, log, meter }: AppParts): Express & { drain(): void } {
  const app = express().disable('x-powered-by');
  const names = new Set(queues.map((queue) => queue.slice(queue.lastIndexOf('/') + 1)));
  let isDraining = false;
  const unanswered = new Set<Response>();
  app.use((_request, response, next) => {
    if (isDraining) response.set('connection', 'close');
    unanswered.add(response);
    response.once('close', () => unanswered.delete(response));
    next();
  });

  /** What the task's headers say, or why they are not believed. */
  const admitted = async (request: Request): Promise<Headers | 'header' | 'queue' | 'token'> => {
    const [, token] = /^Bearer (.+)$/i.exec(request.get('authorization') ?? '') ?? [];
    const headers = headersOf(request, verify && token ? 'cloudtasks' : 'appengine');
    if (headers.queue === undefined) return 'header';
    if (!names.has(headers.queue)) return 'queue';
    if (verify && token) {
      try {
        await verify(token);
      } catch (error) {
        log.warn({ reason: textOf(error) }, 'token refused');
        return 'token';
      }
    } else if (verify) {
      return 'token';
    }
    return headers;
  };

  app.get('/healthz', (_request, response) => void response.sendStatus(200));
  app.get(['/_ah/warmup', '/_ah/start', '/_ah/stop'], async (_request, response) => {
    await warmUp?.().catch((error: unknown) => log.warn({ reason: textOf(error) }, 'not warmed up'));
    response.sendStatus(200);
  });
  app.post('/tasks/release', express.text({ type: () => true, limit: bodyLimit }), async (request, response) => {
    const headers = await admitted(request);
    if (typeof headers === 'string') {
      meter?.record('ptk.delay.forged', { reason: headers });
      log.warn({ reason: headers }, 'call refused: no task of our queues');
      response.status(403).send('only tasks of our queues may release');
      return;
    }
    const { queue = '', task: id } = headers;
    const about = { task: id, queue };
    try {
      const attempt = Number(headers.retries ?? 0) + 1;
      const released = await release({ id, queue, body: taskTextOf(request.body), attempt });
      log[released.kind === 'deadLettered' ? 'warn' : 'debug']({ ...about, ...released }, 'released');
      response.sendStatus(released.kind === 'busy' ? 429 : 200);
    } catch (error) {
      log.warn({ ...about, reason: textOf(error) }, 'not released');
      response.sendStatus(mayPass(error) ? 503 : 500);
    }
  });
  return Object.assign(app, {
    /** A kept connection would bring further tasks to an instance that is to end. */
    drain() {
      isDraining = true;
      for (const response of unanswered) if (!response.headersSent) response.set('connection', 'close');
    },
  });
}

/** What the task carries, also where a parser in front of the app has read it already. */
function taskTextOf(body: unknown): string {
  if (typeof body === 'string') return body;
  if (body === undefined) return '';
  return Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body);
}

const mayPass = (error: unknown): boolean => ['SERVICE_UNAVAILABLE', 'STORE_UNAVAILABLE'].includes(errorCodeOf(error) ?? '');
