import { request } from 'node:http';
import express from 'express';
import { describe, expect, test } from 'vitest';
import { idempotencyKey } from '../../src/shared/transports/express.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { guard, guardedApp, serve } from '../support/express-app.ts';

/** An app whose only route counts its runs and answers with the count. */
async function counted(options: Parameters<typeof guardedApp>[0] = {}) {
  const app = guardedApp(options);
  let runs = 0;
  app.all('/{*path}', (_request, response) => void response.status(201).json({ run: ++runs }));
  return { ...(await serve(app)), runs: () => runs };
}

describe('the header Idempotency-Key', () => {
  test('makes the second request the first one’s echo', async () => {
    const { post, runs } = await counted();
    const first = await post('/orders', '"a"');
    expect(first).toMatchObject({ status: 201, text: '{"run":1}', isReplay: false });
    expect(await post('/orders', '"a"')).toMatchObject({ status: 201, text: '{"run":1}', isReplay: true });
    expect(await post('/orders', '"b"')).toMatchObject({ status: 201, text: '{"run":2}', isReplay: false });
    expect(runs()).toBe(2);
  });

  test.each<[string, string | null, string]>([
    ['is missing', null, 'Idempotency-Key is missing'],
    ['is empty', '', 'Idempotency-Key is missing'],
    ['is an empty string', '""', 'Idempotency-Key is no string'],
    ['is blank', '"  "', 'Idempotency-Key is no string'],
    ['is not closed', '"a', 'Idempotency-Key is no string'],
    ['is a list', 'a, b', 'Idempotency-Key is no string'],
    ['is a list of strings', '"a", "b"', 'Idempotency-Key is no string'],
    ['has a space without quotes', 'a b', 'Idempotency-Key is no string'],
    ['is not ASCII', '"\u00e9"', 'Idempotency-Key is no string'],
    ['has a wrong escape', '"a\\b"', 'Idempotency-Key is no string'],
    ['has 256 characters', `"${'k'.repeat(256)}"`, 'Idempotency-Key is too long'],
    ['has 256 characters without quotes', 'k'.repeat(256), 'Idempotency-Key is too long'],
  ])('that %s is answered 400, and nothing runs', async (_, key, title) => {
    const { post, runs } = await counted();
    const answer = await post('/orders', key);
    expect(answer.status).toBe(400);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(JSON.parse(answer.text)).toEqual({ title, status: 400, detail: expect.stringMatching(/\.$/) });
    expect(runs()).toBe(0);
  });

  test('that is sent twice is answered 400', async () => {
    const { url, runs } = await counted();
    const status = await new Promise((resolve) => {
      const twice = request(`${url}/orders`, { method: 'POST', headers: { 'idempotency-key': ['a', 'b'] } });
      twice.on('response', (response) => resolve(response.resume().statusCode)).end();
    });
    expect([status, runs()]).toEqual([400, 0]);
  });

  test.each([
    ['"8e03978e-40d5-43e8-bc93-6894a57f9324"', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
    ['"order:1/2=3"', 'order:1/2=3'],
    ['"12"', '12'],
    ['"?1"', '?1'],
    ['"a"', '"a";v=1'],
    [`"${'k'.repeat(255)}"`, 'k'.repeat(255)],
  ])('%s is the same key as %s', async (quoted, bare) => {
    const { post, runs } = await counted();
    await post('/orders', quoted);
    expect((await post('/orders', bare)).isReplay).toBe(true);
    expect(runs()).toBe(1);
  });

  test('is asked for with POST and PATCH alone, and others pass untouched', async () => {
    const { send, runs } = await counted();
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS']) {
      for (const repeated of [1, 2])
        expect([repeated, (await send('/o', { method, headers: { 'idempotency-key': 'k' } })).status]).toEqual([repeated, 201]);
    }
    expect(runs()).toBe(8);
    expect((await send('/o', { method: 'PATCH' })).status).toBe(400);
    expect((await send('/o', { method: 'HEAD' })).status).toBe(201);
  });

  test('is asked for with the methods that are named', async () => {
    const { send } = await counted({ requiredOn: ['PUT'] });
    expect((await send('/o', { method: 'PUT' })).status).toBe(400);
    expect((await send('/o', { method: 'POST' })).status).toBe(201);
  });
});

describe('a key', () => {
  test('belongs to its method, its route and its scope', async () => {
    const { send, runs } = await counted({ scopeOf: ({ headers }) => String(headers['x-tenant'] ?? 'none') });
    const ask = (method: string, path: string, tenant = '1') =>
      send(path, { method, headers: { 'idempotency-key': 'k', 'x-tenant': tenant } });
    const answers = [
      await ask('POST', '/a'),
      await ask('PATCH', '/a'),
      await ask('POST', '/b'),
      await ask('POST', '/a', '2'),
      await ask('POST', '/a', '1'),
    ];
    expect(answers.map(({ isReplay }) => isReplay)).toEqual([false, false, false, false, true]);
    expect(runs()).toBe(4);
  });

  test('of a guarded route is used for another path of it: 422', async () => {
    const app = express();
    const router = express.Router();
    router.post('/orders/:id', express.json(), guard(), ({ params }, response) => void response.json(params));
    app.use('/v1', router);
    const { post } = await serve(app);
    expect((await post('/v1/orders/1')).text).toBe('{"id":"1"}');
    expect((await post('/v1/orders/1')).isReplay).toBe(true);
    expect((await post('/v1/orders/2')).status).toBe(422);
  });

  test.each<[string, string, unknown, string, unknown, number]>([
    ['other members', '/o', { a: 1 }, '/o', { a: 2 }, 422],
    ['other nested members', '/o', { a: { b: [1, 2] } }, '/o', { a: { b: [2, 1] } }, 422],
    ['another query', '/o?x=1', { a: 1 }, '/o?x=2', { a: 1 }, 422],
    ['a member more', '/o', {}, '/o', JSON.parse('{"__proto__":1}'), 422],
    ['members in another order', '/o', { a: 1, b: { c: 2, d: 3 } }, '/o', { b: { d: 3, c: 2 }, a: 1 }, 201],
  ])('that comes with %s is judged by its content', async (_, path, body, otherPath, otherBody, status) => {
    const { post, runs } = await counted();
    await post(path, 'k', body);
    const second = await post(otherPath, 'k', otherBody);
    expect([second.status, second.isReplay]).toEqual([status, status === 201]);
    if (status === 422) expect(JSON.parse(second.text).title).toBe('Idempotency-Key is already used');
    expect(runs()).toBe(1);
  });

  test.each(['text/plain', 'application/octet-stream'])('covers a body of %s', async (type) => {
    const { send } = await counted();
    const ask = (body: string) => send('/o', { method: 'POST', body, headers: { 'idempotency-key': 'k', 'content-type': type } });
    expect([(await ask('a')).status, (await ask('a')).isReplay, (await ask('b')).status]).toEqual([201, true, 422]);
  });

  test('cannot guard a body that no parser reads: 415', async () => {
    const { send, runs } = await counted();
    const headers = { 'idempotency-key': 'k', 'content-type': 'application/xml' };
    expect((await send('/o', { method: 'POST', body: '<a/>', headers })).status).toBe(415);
    expect(runs()).toBe(0);
  });

  test('cannot guard a body that is nested too deeply: 400', async () => {
    const { send } = await counted();
    const body = '['.repeat(40_000) + ']'.repeat(40_000);
    const headers = { 'idempotency-key': 'k', 'content-type': 'application/json' };
    expect((await send('/o', { method: 'POST', body, headers })).status).toBe(400);
  });

  test.each([undefined, '', 7])('whose scope is %j runs nothing', async (scope) => {
    const { post, runs } = await counted({ scopeOf: () => scope as string });
    expect((await post('/o')).status).toBe(500);
    expect(runs()).toBe(0);
  });
});

test.each<[object, RegExp]>([
  [{ idempotent: undefined }, /^idempotent is no function/],
  [{ maxBodyBytes: -1 }, /^maxBodyBytes is -1; it must be a whole number from 0 to 600000$/],
  [{ maxBodyBytes: 600_001 }, /^maxBodyBytes is 600001/],
  [{ maxBodyBytes: 1.5 }, /^maxBodyBytes is 1.5/],
  [{ requiredOn: ['post'] }, /^requiredOn has "post"; it must be a method in capitals/],
])('settings %j are refused', (parts, message) => {
  const make = () =>
    idempotencyKey({ idempotent: async () => undefined, log: silentLog, ...parts } as Parameters<typeof idempotencyKey>[0]);
  expect(make).toThrow(expect.objectContaining({ code: 'INVALID_SETTINGS', message: expect.stringMatching(message) }));
});
