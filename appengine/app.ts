import express, { type Express } from 'express';
import type { createRelease } from '../src/shared/delay/release.ts';
import { textOf } from '../src/shared/errors.ts';
import type { Message } from '../src/shared/message.ts';
import type { DeadLetters, Log } from '../src/shared/ports.ts';
import { verdictOfError } from '../src/shared/verdict.ts';

export type AppParts = { readonly release: ReturnType<typeof createRelease>; readonly deadLetters: DeadLetters; readonly log: Log };

/** Larger than any task. */
const bodyLimit = '2mb';

/**
 * Releases tasks. App Engine strips `X-AppEngine-*` from outside calls, so the queue's name proves where a call comes from.
 * A task that can never be released is dead-lettered and ends; any other failure is 500, and the queue tries again.
 */
export function createApp({ release, deadLetters, log }: AppParts): Express {
  const app = express().disable('x-powered-by');
  const endOf = async (error: unknown, message: Message): Promise<200 | 500> => {
    const verdict = verdictOfError(error);
    if (verdict.kind !== 'deadLetter') return 500;
    try {
      await deadLetters.publish(message, verdict);
      return 200;
    } catch (failure) {
      log.error({ messageId: message.messageId, reason: textOf(failure) }, 'dead letter not published');
      return 500;
    }
  };
  app.get(['/healthz', '/_ah/warmup'], (_request, response) => {
    response.sendStatus(200);
  });
  app.post('/tasks/release', express.text({ type: () => true, limit: bodyLimit }), async (request, response) => {
    const queue = request.get('x-appengine-queuename');
    const task = request.get('x-appengine-taskname') ?? '';
    if (!queue) {
      response.status(403).send('only tasks of a queue may release');
      return;
    }
    try {
      const released = await release(parsed(request.body));
      log.debug({ task, ...released }, 'released');
      response.sendStatus(200);
    } catch (error) {
      log.warn({ task, queue, reason: textOf(error) }, 'not released');
      response.sendStatus(await endOf(error, asMessage(String(request.body ?? ''), queue, task)));
    }
  });
  return app;
}

/** A body that is no JSON is malformed like any other that has not the task's form. */
function parsed(body: unknown): unknown {
  try {
    return JSON.parse(String(body));
  } catch {
    return undefined;
  }
}

const asMessage = (body: string, queue: string, task: string): Message => ({
  messageId: task,
  data: Buffer.from(body),
  attributes: {},
  orderingKey: '',
  publishTimeMs: undefined,
  subscription: queue,
  deliveryAttempt: undefined,
});
