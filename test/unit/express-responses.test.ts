import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Express, NextFunction, Request, Response } from 'express';
import { describe, expect, test } from 'vitest';
import { guardedApp, serve } from '../support/express-app.ts';

type Handle = (request: Request, response: Response, next: NextFunction) => unknown;

/** One guarded route, asked as often as the test asks. */
async function route(handle: Handle, options?: Parameters<typeof guardedApp>[0], extend: (app: Express) => void = () => {}) {
  const app = guardedApp(options);
  let runs = 0;
  app.post('/', (request, response, next) => {
    runs += 1;
    return handle(request, response, next);
  });
  extend(app);
  const served = await serve(app);
  return { ...served, ask: (body?: unknown) => served.post('/', '"k"', body), runs: () => runs };
}

const ways: readonly (readonly [string, Handle, number, string])[] = [
  ['json', (_, response) => response.status(201).json({ a: 'ä' }), 201, '{"a":"ä"}'],
  ['send', (_, response) => response.send('text'), 200, 'text'],
  ['send of bytes', (_, response) => response.send(Buffer.from('bytes')), 200, 'bytes'],
  ['sendStatus', (_, response) => response.sendStatus(202), 202, 'Accepted'],
  ['end without a body', (_, response) => response.status(204).end(), 204, ''],
  ['end with a callback', (_, response) => response.end('e', () => {}), 200, 'e'],
  ['redirect', (_, response) => response.redirect('/elsewhere'), 302, 'Found. Redirecting to /elsewhere'],
  ['writeHead', (_, response) => response.writeHead(203, 'Mine', { 'Content-Type': 'text/plain' }).end('w'), 203, 'w'],
  ['writeHead with a list', (_, response) => response.writeHead(203, ['Content-Type', 'text/plain']).end('w'), 203, 'w'],
  [
    'writes',
    (_, response) => {
      response.flushHeaders();
      response.write('74', 'hex');
      response.write(Buffer.from('w'), () => {});
      response.end('o', 'utf8');
    },
    200,
    'two',
  ],
  ['a pipe', (_, response) => Readable.from(['p', 'q', 'r']).pipe(response), 200, 'pqr'],
  ['a pipeline', (_, response) => pipeline(Readable.from([Buffer.from('p'), Buffer.from('q')]), response), 200, 'pq'],
  ['a refusal', (_, response) => response.status(404).json({ no: 1 }), 404, '{"no":1}'],
  ['a conflict of its own', (_, response) => response.status(409).json({ no: 1 }), 409, '{"no":1}'],
];

describe('a response', () => {
  test.each(ways)('made by %s is replayed as it was', async (_, handle, status, text) => {
    const { ask, runs } = await route(handle);
    const first = await ask();
    const second = await ask();
    expect([first.status, first.text, first.isReplay]).toEqual([status, text, false]);
    expect([second.status, second.text, second.isReplay]).toEqual([status, text, true]);
    for (const name of ['content-type', 'location', 'etag']) expect(second.headers.get(name)).toBe(first.headers.get(name));
    expect(runs()).toBe(1);
  });

  test('is replayed with the headers of its content, and without cookies and those of the connection', async () => {
    const { ask } = await route((_, response) => {
      response.cookie('session', 'secret').set({ Location: '/o/1', 'Content-Language': 'de', 'X-Own': '1', Connection: 'close' });
      response.status(201).json({});
    });
    expect((await ask()).headers.get('set-cookie')).toContain('secret');
    const { headers } = await ask();
    expect([headers.get('location'), headers.get('content-language')]).toEqual(['/o/1', 'de']);
    expect([headers.get('set-cookie'), headers.get('x-own')]).toEqual([null, null]);
    expect(headers.get('connection')).not.toBe('close');
  });

  test('keeps the headers that middleware in front has set, on a replay too', async () => {
    const app = guardedApp();
    app.post('/', (_request, response) => {
      response.removeHeader('X-Powered-By');
      response.json({});
    });
    const { post } = await serve(app);
    expect((await post('/')).headers.get('x-powered-by')).toBeNull();
    expect((await post('/')).headers.get('x-powered-by')).toBe('Express');
  });

  test('that is ended twice is the first one', async () => {
    const { ask } = await route((_, response) => {
      response.status(201).json({ first: 1 });
      response.status(200).json({ second: 1 });
      response.write('more');
    });
    for (const _ of [1, 2]) expect(await ask()).toMatchObject({ status: 201, text: '{"first":1}' });
  });

  test('that is sent before the handler throws stands', async () => {
    const { ask, runs } = await route((_, response) => {
      response.status(201).json({ first: 1 });
      throw new Error('too late');
    });
    for (const _ of [1, 2]) expect(await ask()).toMatchObject({ status: 201, text: '{"first":1}' });
    expect(runs()).toBe(1);
  });

  test.each([500, 503, 408, 425, 429])('of %i frees the key', async (status) => {
    const { ask, runs } = await route((_, response) => response.status(runs() === 1 ? status : 200).json({ run: runs() }));
    const first = await ask();
    expect(first).toMatchObject({ status, text: '{"run":1}', isReplay: false });
    expect(first.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await ask()).toMatchObject({ status: 200, text: '{"run":2}', isReplay: false });
    expect(await ask()).toMatchObject({ status: 200, text: '{"run":2}', isReplay: true });
  });

  test.each<[string, Handle]>([
    ['throws', () => Promise.reject(new Error('boom'))],
    ['hands on an error', (_request, _response, next) => next(new Error('boom'))],
    [
      'breaks off in its response',
      (_, response) => {
        response.write('part');
        throw new Error('boom');
      },
    ],
  ])('of a handler that %s is the error handler’s, and the key is free', async (_, fails) => {
    const { ask, runs } = await route((request, response, next) => (runs() === 1 ? fails(request, response, next) : response.send('ok')));
    const first = await ask();
    expect([first.status, first.text.startsWith('<!DOCTYPE html>')]).toEqual([500, true]);
    expect(await ask()).toMatchObject({ status: 200, text: 'ok', isReplay: false });
  });

  test('of the app’s own error handler is kept where it is a refusal', async () => {
    const { ask, runs } = await route(
      () => Promise.reject(new Error('no such order')),
      {},
      (app) => {
        app.use((error: Error, _request: Request, response: Response, _next: NextFunction) => {
          response.status(422).json({ error: error.message });
        });
      },
    );
    for (const isReplay of [false, true]) expect(await ask()).toMatchObject({ status: 422, text: '{"error":"no such order"}', isReplay });
    expect(runs()).toBe(1);
  });

  test('waits for middleware that sets its headers with the first byte', async () => {
    const { ask } = await route((_, response) => {
      const { writeHead } = response;
      response.writeHead = ((...args: Parameters<typeof writeHead>) => {
        response.setHeader('Content-Language', 'fr');
        return writeHead.apply(response, args);
      }) as typeof writeHead;
      response.json({});
    });
    for (const _ of [1, 2]) expect((await ask()).headers.get('content-language')).toBe('fr');
  });
});

describe('a body', () => {
  test.each([
    [100, true],
    [101, false],
  ])('of %i bytes, where 100 are kept, is kept: %s', async (bytes, isKept) => {
    const { ask } = await route((_, response) => response.location('/o/1').status(201).send('x'.repeat(bytes)), { maxBodyBytes: 100 });
    expect((await ask()).text).toHaveLength(bytes);
    const { status, text, headers, isReplay } = await ask();
    expect([status, text.length, headers.get('location'), isReplay]).toEqual([201, isKept ? bytes : 0, '/o/1', true]);
    expect(headers.get('idempotency-body')).toBe(isKept ? null : 'not-kept');
    expect(headers.get('content-type')).toBe(isKept ? 'text/html; charset=utf-8' : null);
  });

  test('that fits here and not in the record is gone: 410', async () => {
    const over = { options: { maxResultBytes: 50 } };
    const { ask, runs } = await route((_, response) => response.send('x'.repeat(100)), { over });
    expect((await ask()).status).toBe(200);
    const second = await ask();
    expect([second.status, JSON.parse(second.text).title]).toEqual([410, 'The response is gone']);
    expect(runs()).toBe(1);
  });

  test('of 32,768 bytes is kept with the defaults', async () => {
    const { ask } = await route((_, response) => response.send(Buffer.alloc(32_768, 0)));
    await ask();
    expect((await ask()).text).toHaveLength(32_768);
  });
});
