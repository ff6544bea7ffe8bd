import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Reconcile } from '../shared/dedup/run.ts';
import { ToolkitError, textOf } from '../shared/errors.ts';
import { dedupKeyOf, forwarded } from '../shared/message.ts';
import type { Context, Handler, Publisher } from '../shared/ports.ts';
import { envelopeOf } from '../shared/transports/push.ts';
import { invalid, topicName, withoutSecret } from './settings.ts';

const sinkTimeoutMs = 60_000;

/**
 * The handler that `SINK` names.
 * @param folder the deployable's own; modules are relative to it
 * @throws INVALID_SETTINGS
 */
export async function createSink<C extends Context>(sink: string, publisher: Publisher, folder: string): Promise<Handler<C>> {
  const [, scheme = '', target = ''] = /^([a-z]+):(.+)$/s.exec(sink) ?? [];
  if (scheme === 'topic' && topicName.test(target)) return topicSink(publisher, target);
  if (scheme === 'https' || scheme === 'http') return httpSink(sink);
  if (scheme === 'module') return moduleSink(target, folder);
  throw invalid(`SINK is "${withoutSecret(sink)}"; it must be topic:NAME, https://… or module:./path.js`);
}

function topicSink(publisher: Publisher, topic: string): Handler {
  return async (message, context) => {
    await publisher.publish(topic, [forwarded(message, context.idempotencyKey ?? dedupKeyOf(message))]);
  };
}

const loopback = new Set(['localhost', '127.0.0.1', '[::1]']);

/** The push envelope as it came. 2xx: processed; a 4xx that is about the message refuses it for good; any other answer may pass. */
function httpSink(sink: string): Handler {
  const url = URL.canParse(sink) ? new URL(sink) : undefined;
  if (!url || url.username || url.password)
    throw invalid(`SINK is "${withoutSecret(sink)}", which is no URL without user name and password`);
  if (url.protocol === 'http:' && !loopback.has(url.hostname)) throw invalid(`SINK is "${sink}"; http:// is allowed for loopback only`);
  return async (message, context) => {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(sinkTimeoutMs)]);
    const headers = {
      'content-type': 'application/json',
      'idempotency-key': encodeURIComponent(context.idempotencyKey ?? dedupKeyOf(message)),
    };
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body: JSON.stringify(envelopeOf(message)),
      signal,
      redirect: 'manual',
    }).catch((error: unknown) => {
      throw new ToolkitError('SERVICE_UNAVAILABLE', `the sink ${url.origin} gave no answer: ${textOf(error)}`, error);
    });
    await response.body?.cancel();
    if (response.ok) return;
    const refused = response.status >= 400 && response.status < 500 && ![401, 403, 404, 408, 425, 429].includes(response.status);
    throw new ToolkitError(refused ? 'REFUSED' : 'SERVICE_UNAVAILABLE', `the sink ${url.origin} answered ${response.status}`);
  };
}

async function moduleSink<C extends Context>(path: string, folder: string): Promise<Handler<C>> {
  const { default: handler } = await loadModule(path, folder);
  if (typeof handler !== 'function') throw invalid(`SINK names the module ${path}, whose default export is no handler function`);
  return handler as Handler<C>;
}

/**
 * The export `reconcile` of a module sink; undefined where there is none.
 * @throws INVALID_SETTINGS
 */
export async function sinkReconcile(sink: string, folder: string): Promise<Reconcile | undefined> {
  const path = /^module:(.+)$/s.exec(sink)?.[1];
  if (path === undefined) return undefined;
  const { reconcile } = await loadModule(path, folder);
  if (reconcile !== undefined && typeof reconcile !== 'function')
    throw invalid(`SINK names the module ${path}, whose export reconcile is no function`);
  return reconcile as Reconcile | undefined;
}

async function loadModule(path: string, folder: string): Promise<{ readonly default?: unknown; readonly reconcile?: unknown }> {
  const file = resolve(folder, path);
  if (!(await readFile(file).catch(() => undefined)))
    throw invalid(`SINK names the module ${path}, which is not in the deployable's folder`);
  return import(pathToFileURL(file).href);
}
