import type { Server } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { createApp } from '../../appengine/app.ts';
import type { DispatchedTask } from '../../src/shared/delay/release.ts';
import type { Released } from '../../src/shared/delay/release-record.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { gate } from '../support/manual-system.ts';

const task = { 'X-AppEngine-QueueName': 'q', 'X-AppEngine-TaskName': 't1' };
let server: Server | undefined;

afterEach(async () => {
  const closed = new Promise((resolve) => server?.close(resolve));
  server?.closeAllConnections();
  await closed;
});

type Given = {
  readonly outcome?: Released | Error;
  readonly release?: () => Promise<Released>;
  readonly verify?: (token: string) => Promise<void>;
};

/** An app on a free port whose release answers or fails so. */
async function setUp({ outcome = { kind: 'published', messageId: '7' }, release: given, verify }: Given = {}) {
  const released: DispatchedTask[] = [];
  const forged: object[] = [];
  const release = async (dispatched: DispatchedTask) => {
    released.push(dispatched);
    if (given) return given();
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
  const meter = { record: (name: string, attributes: object) => void forged.push({ name, ...attributes }) };
  const queues = ['projects/p/locations/l/queues/q', 'projects/p/locations/l/queues/r'];
  const app = createApp({ release, queues, verify, log: silentLog, meter });
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
  return { app, released, forged, origin, post };
}

describe('a call that no queue of ours made is 403, releases nothing, and is counted', () => {
  test.each<[string, Record<string, string>, string]>([
    ['without a header', {}, 'header'],
    ['with an empty queue', { 'X-AppEngine-QueueName': '' }, 'queue'],
    ['with a task’s name alone', { 'X-AppEngine-TaskName': 't1' }, 'header'],
    ['with the header of an HTTP target', { 'X-CloudTasks-QueueName': 'q' }, 'header'],
    ['of another queue', { ...task, 'X-AppEngine-QueueName': 'other' }, 'queue'],
    ['of a queue whose full name is given', { ...task, 'X-AppEngine-QueueName': 'projects/p/locations/l/queues/q' }, 'queue'],
  ])('%s', async (_, headers, reason) => {
    const { released, forged, post } = await setUp();
    expect(await post('{"v":1}', headers)).toBe(403);
    expect(released).toEqual([]);
    expect(forged).toEqual([{ name: 'ptk.delay.forged', reason }]);
  });

  const verify = async (token: string) => {
    if (token !== 'good') throw new Error('no');
  };
  test.each<[string, Record<string, string>, string]>([
    ['App Engine’s header, which nobody strips here', task, 'token'],
    ['a token that is refused', { 'X-CloudTasks-QueueName': 'q', Authorization: 'Bearer bad' }, 'token'],
    ['a good token of another queue', { 'X-CloudTasks-QueueName': 'other', Authorization: 'Bearer good' }, 'queue'],
    ['a good token without a queue', { ...task, Authorization: 'Bearer good' }, 'header'],
  ])('where tokens count: %s', async (_, headers, reason) => {
    const { released, forged, post } = await setUp({ verify });
    expect(await post('{"v":1}', headers)).toBe(403);
    expect(released).toEqual([]);
    expect(forged).toEqual([{ name: 'ptk.delay.forged', reason }]);
  });

  test('where tokens count, a good one of our queue releases', async () => {
    const { released, post } = await setUp({ verify });
    const headers = { 'X-CloudTasks-QueueName': 'r', 'X-CloudTasks-TaskName': 't2', Authorization: 'Bearer good' };
    expect(await post('{"v":1}', headers)).toBe(200);
    expect(released).toEqual([{ id: 't2', queue: 'r', body: '{"v":1}', attempt: 1 }]);
  });
});

describe('POST /tasks/release', () => {
  test.each(['application/json', 'application/octet-stream', 'text/plain'])('hands on the text of a task, sent as %s', async (type) => {
    const { released, post } = await setUp();
    expect(await post('{"v":1,"é":[null]}', { ...task, 'Content-Type': type })).toBe(200);
    expect(released).toEqual([{ id: 't1', queue: 'q', body: '{"v":1,"é":[null]}', attempt: 1 }]);
  });

  test.each([
    ['x-appengine-queuename', 'x-appengine-taskname', 'x-appengine-taskretrycount'],
    ['X-Appengine-Queuename', 'X-Appengine-Taskname', 'X-Appengine-Taskretrycount'],
  ])('knows the headers however they are written: %s', async (queue, name, retries) => {
    const { released, post } = await setUp();
    expect(await post('{}', { [queue]: 'q', [name]: 't1', [retries]: '4' })).toBe(200);
    expect(released).toEqual([{ id: 't1', queue: 'q', body: '{}', attempt: 5 }]);
  });

  test('takes a task of 1 MB', async () => {
    const { post } = await setUp();
    expect(await post(JSON.stringify({ data: 'x'.repeat(1_048_576) }), task)).toBe(200);
  });

  test('hands on an empty body', async () => {
    const { released, post } = await setUp();
    expect(await post('', task)).toBe(200);
    expect(released.map(({ body }) => body)).toEqual(['']);
  });

  test.each<[string, Released | Error, number]>([
    ['a message that is published', { kind: 'published', messageId: '7' }, 200],
    ['a hop', { kind: 'hop', hop: 2 }, 200],
    ['a task that is over', { kind: 'ended' }, 200],
    ['a dead letter that is stored', { kind: 'deadLettered', reason: 'refused' }, 200],
    ['another dispatch at work, which must not slow the queue', { kind: 'busy' }, 429],
    ['a service that is down', new ToolkitError('SERVICE_UNAVAILABLE', 'later'), 503],
    ['a store that is down', new ToolkitError('STORE_UNAVAILABLE', 'later'), 503],
    ['anything else', new Error('boom'), 500],
  ])('answers %s', async (_, outcome, status) => {
    const { post } = await setUp({ outcome });
    expect(await post('{}', task)).toBe(status);
  });

  test('keeps no connection once the instance is to end', async () => {
    const { app, origin } = await setUp();
    const connection = async () => {
      const response = await fetch(`${origin}/healthz`);
      await response.text();
      return response.headers.get('connection');
    };
    expect(await connection()).toBe('keep-alive');
    app.drain();
    expect(await connection()).toBe('close');
  });

  test('keeps no connection of a task that was in hand then', async () => {
    const [atWork, done] = [gate(), gate()];
    const release = async (): Promise<Released> => {
      atWork.open();
      await done.opened;
      return { kind: 'ended' };
    };
    const { app, origin } = await setUp({ release });
    const answered = fetch(`${origin}/tasks/release`, { method: 'POST', body: '{}', headers: task });
    await atWork.opened;
    app.drain();
    done.open();
    const response = await answered;
    await response.text();
    expect([response.status, response.headers.get('connection')]).toEqual([200, 'close']);
  });
});

test.each([
  ['/healthz', 200],
  ['/_ah/warmup', 200],
  ['/_ah/start', 200],
  ['/_ah/stop', 200],
  ['/', 404],
  ['/tasks/release', 404],
])('GET %s is answered %d', async (path, status) => {
  const { origin } = await setUp();
  const response = await fetch(origin + path);
  await response.text();
  expect(response.status).toBe(status);
  expect(response.headers.has('x-powered-by')).toBe(false);
});
