import type { Server } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { createApp } from '../../appengine/app.ts';
import { malformed, ToolkitError } from '../../src/shared/errors.ts';
import type { DeadLetters } from '../../src/shared/ports.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';

const task = { 'X-AppEngine-QueueName': 'q', 'X-AppEngine-TaskName': 't1' };
let server: Server | undefined;

afterEach(async () => {
  const closed = new Promise((resolve) => server?.close(resolve));
  server?.closeAllConnections();
  await closed;
});

/** An app on a free port whose release fails with the error, if one is given. */
async function setUp(failure?: Error, deadLetters: DeadLetters = keptDeadLetters()) {
  const released: unknown[] = [];
  const release = async (body: unknown) => {
    released.push(body);
    if (failure) throw failure;
    return { messageId: '7' };
  };
  const app = createApp({ release, deadLetters, log: silentLog });
  server = await new Promise<Server>((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening));
  });
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  const post = (body: string, headers: Record<string, string>) =>
    fetch(`${origin}/tasks/release`, { method: 'POST', body, headers }).then(async (response) => {
      await response.text();
      return response.status;
    });
  return { released, origin, post };
}

describe('POST /tasks/release', () => {
  test.each([{}, { 'X-AppEngine-QueueName': '' }, { 'X-AppEngine-TaskName': 't1' }, { 'X-CloudTasks-QueueName': 'q' }])(
    'with the headers %o is no task of a queue: 403, and nothing is released',
    async (headers) => {
      const { released, post } = await setUp();
      expect(await post('{"v":1}', headers)).toBe(403);
      expect(released).toEqual([]);
    },
  );

  test.each(['application/json', 'application/octet-stream', 'text/plain'])('releases the JSON of a task, sent as %s', async (type) => {
    const { released, post } = await setUp();
    expect(await post('{"v":1,"é":[null]}', { ...task, 'Content-Type': type })).toBe(200);
    expect(released).toEqual([{ v: 1, é: [null] }]);
  });

  test('knows the header however it is written', async () => {
    const { post } = await setUp();
    expect(await post('{}', { 'x-appengine-queuename': 'q' })).toBe(200);
  });

  test('takes a task of 1 MB', async () => {
    const { post } = await setUp();
    expect(await post(JSON.stringify({ data: 'x'.repeat(1_048_576) }), task)).toBe(200);
  });

  test.each(['', 'no JSON', '{"v":1'])('reads the body %j as a task without fields', async (body) => {
    const { released, post } = await setUp();
    await post(body, task);
    expect(released).toEqual([undefined]);
  });

  test.each([
    ['malformed', malformed('why')],
    ['refused', new ToolkitError('REFUSED', 'why')],
    ['tooLarge', new ToolkitError('MESSAGE_TOO_LARGE', 'why')],
  ])('ends a task that is %s as a dead letter with its body', async (reason, failure) => {
    const deadLetters = keptDeadLetters();
    const { post } = await setUp(failure, deadLetters);
    expect(await post('{"v":7}', task)).toBe(200);
    expect(deadLetters.kept).toEqual([
      { message: expect.objectContaining({ messageId: 't1', data: Buffer.from('{"v":7}'), subscription: 'q' }), reason, detail: 'why' },
    ]);
  });

  test('is tried again where the dead letter could not be stored', async () => {
    const { post } = await setUp(malformed('why'), { publish: () => Promise.reject(new Error('no topic')) });
    expect(await post('{}', task)).toBe(500);
  });

  test.each([new ToolkitError('SERVICE_UNAVAILABLE', 'later'), new Error('boom')])('is tried again after %s', async (failure) => {
    const deadLetters = keptDeadLetters();
    const { post } = await setUp(failure, deadLetters);
    expect(await post('{}', task)).toBe(500);
    expect(deadLetters.kept).toEqual([]);
  });
});

test.each([
  ['/healthz', 200],
  ['/_ah/warmup', 200],
  ['/', 404],
  ['/tasks/release', 404],
])('GET %s is answered %d', async (path, status) => {
  const { origin } = await setUp();
  const response = await fetch(origin + path);
  await response.text();
  expect(response.status).toBe(status);
  expect(response.headers.has('x-powered-by')).toBe(false);
});
