import type { Server } from 'node:http';
import express, { type Express } from 'express';
import { onTestFinished } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createIdempotent, type IdempotentParts } from '../../src/shared/dedup/idempotent.ts';
import { type IdempotencyKeyParts, idempotencyKey } from '../../src/shared/transports/express.ts';
import { silentLog } from '../../src/testing/doubles.ts';

export type Answered = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly isReplay: boolean;
};

export type Served = {
  readonly url: string;
  /** Posts JSON under the key. */
  post(path: string, key?: string | null, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  send(path: string, init: RequestInit): Promise<Answered>;
};

/** The app on a free port of loopback until the test is over. */
export async function serve(app: Express): Promise<Served> {
  const server = await new Promise<Server>((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening));
  });
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  const send: Served['send'] = async (path, init) => {
    const response = await fetch(url + path, { redirect: 'manual', ...init });
    const { status, headers } = response;
    return { status, headers, text: await response.text(), isReplay: headers.get('idempotency-replayed') === 'true' };
  };
  return {
    url,
    send,
    post: (path, key = '"k"', body = {}, headers = {}) =>
      send(path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...(key !== null && { 'idempotency-key': key }), ...headers },
      }),
  };
}

export type GuardOptions = Partial<IdempotencyKeyParts> & { readonly over?: Partial<IdempotentParts> };

/** The middleware over a memory store. */
export function guard({ over, ...parts }: GuardOptions = {}) {
  const store = memoryRecordStore<DedupRecord>(system.clock);
  const idempotent = createIdempotent({ consumer: 'orders', store, system, log: silentLog, ...over });
  return idempotencyKey({ idempotent, log: silentLog, ...parts });
}

/** An app that parses JSON and texts, guards each route, and has no error page in the test's output. */
export function guardedApp(options?: GuardOptions): Express {
  const app = express();
  app.set('env', 'test');
  app.use(express.json(), express.text(), express.raw());
  app.use(guard(options));
  return app;
}
