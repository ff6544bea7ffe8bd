import { afterAll, describe, expect, test } from 'vitest';
import { createAppEngineFront } from '../../src/emulator/tasks/service.ts';
import { statement } from '../support/targets.ts';
import { startTasksStack } from '../support/tasks-stack.ts';

const stack = await startTasksStack();
const { app, createQueue, createTask, faults, target, time } = stack;
const front = await createAppEngineFront({ target: app.url });
afterAll(stack.close);
afterAll(front.close);

const agent = 'AppEngine-Google; (+http://code.google.com/appengine)';
const headersOf = (path: string) => app.received(path)[0]?.headers ?? {};

describe('Cloud Tasks, App Engine requests', () => {
  statement(target, 85, 'a request has the five task headers, the User-Agent and a Content-Type for its body', async () => {
    const queue = await createQueue('headed');
    const dueAtMs = time.nowMs() + 1500;
    await createTask(queue, '/headed?a=b', {
      id: 'task_1',
      scheduleTime: { seconds: Math.floor(dueAtMs / 1000), nanos: 500_000_000 },
      appEngineHttpRequest: { relativeUri: '/headed?a=b', body: Buffer.from('payload') },
    });
    await time.advance(1500);
    const [request] = app.received('/headed?a=b');
    expect(request).toMatchObject({ method: 'POST', body: 'payload', atMs: dueAtMs });
    expect(request?.headers).toMatchObject({
      'x-appengine-queuename': 'headed',
      'x-appengine-taskname': 'task_1',
      'x-appengine-taskretrycount': '0',
      'x-appengine-taskexecutioncount': '0',
      'x-appengine-tasketa': (dueAtMs / 1000).toFixed(6),
      'user-agent': agent,
      'content-type': 'application/octet-stream',
    });
  });

  statement(target, 85, 'headers of the user pass, but not Host, X-AppEngine-* or X-Google-*, and a User-Agent is added to', async () => {
    const queue = await createQueue('custom');
    await createTask(queue, '/custom', {
      appEngineHttpRequest: {
        relativeUri: '/custom',
        httpMethod: 'PUT',
        body: Buffer.from('{}'),
        headers: {
          'Content-Type': 'application/json',
          'User-Agent': 'mine/1',
          'X-Mine': 'kept',
          Host: 'elsewhere',
          'x-appengine-queuename': 'forged',
          'X-AppEngine-TaskName': 'forged',
          'X-AppEngine-Cron': 'true',
          'X-Google-Thing': 'forged',
        },
      },
    });
    await time.advance(0);
    const headers = headersOf('/custom');
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': `mine/1 ${agent}`, 'x-mine': 'kept' });
    expect(headers).toMatchObject({ 'x-appengine-queuename': 'custom', host: new URL(app.url).host });
    expect(JSON.stringify(headers)).not.toMatch(/forged|x-appengine-cron/);
    expect(app.received('/custom')[0]?.method).toBe('PUT');
  });

  test('a body arrives byte for byte, to App Engine and to an HTTP target', async () => {
    const queue = await createQueue('bytes');
    const body = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    await createTask(queue, '', { appEngineHttpRequest: { relativeUri: '/bytes/app', body } });
    await createTask(queue, '', { appEngineHttpRequest: null, httpRequest: { url: `${app.url}/bytes/http`, body } });
    await time.advance(0);
    const arrived = ['/bytes/app', '/bytes/http'].map((path) => app.received(path)[0]);
    expect(arrived.map((request) => request?.bytes)).toEqual([body, body]);
    expect(arrived.map((request) => request?.headers['content-length'])).toEqual(['256', '256']);
  });

  test('a task without a body has no Content-Type, and an empty relative URI is the root', async () => {
    const queue = await createQueue('bare');
    const task = await createTask(queue, '', { appEngineHttpRequest: { httpMethod: 'GET' } });
    expect(task.appEngineHttpRequest).toMatchObject({
      relativeUri: '/',
      httpMethod: 'GET',
      appEngineRouting: { host: 'ptk-test.appspot.com' },
    });
    await time.advance(0);
    expect(app.received('/')).toHaveLength(1);
    expect(headersOf('/')).not.toHaveProperty('content-type');
  });

  test('the routing of the queue wins over that of the task', async () => {
    const queue = await createQueue('routed', { appEngineRoutingOverride: { service: 'release' } });
    const { appEngineHttpRequest } = await createTask(queue, '/routed', {
      appEngineHttpRequest: { relativeUri: '/routed', appEngineRouting: { service: 'other', version: 'v2' } },
    });
    expect(appEngineHttpRequest?.appEngineRouting).toMatchObject({ service: 'release', version: '', host: 'release.ptk-test.appspot.com' });
  });

  statement(target, 91, 'a duplicate is dispatched only where a fault asks for it, with the same headers', async () => {
    const queue = await createQueue('doubled');
    await createTask(queue, '/doubled/off');
    const remove = faults.add({ kind: 'double-dispatch', resource: '/queues/doubled', times: 1 });
    await createTask(queue, '/doubled/on');
    await time.advance(0);
    remove();
    expect(app.received('/doubled/off')).toHaveLength(1);
    const [first, second, ...more] = app.received('/doubled/on');
    expect(more).toEqual([]);
    expect(second?.headers).toEqual(first?.headers);
    expect(second?.headers['x-appengine-taskretrycount']).toBe('0');
  });
});

describe('the front of the App Engine app', () => {
  statement(target, 85, 'a request from outside loses X-AppEngine-* and X-Google-* and keeps all else', async () => {
    app.answer('/front?q=1', (answer) => void answer.writeHead(418, { 'X-Answer': 'kept' }).end('short and stout'));
    const answer = await fetch(`${front.url}/front?q=1`, {
      method: 'PUT',
      body: 'payload',
      headers: { 'X-AppEngine-QueueName': 'forged', 'x-appengine-cron': 'true', 'X-Google-Thing': 'forged', 'X-Mine': 'kept' },
    });
    expect([answer.status, answer.headers.get('x-answer'), await answer.text()]).toEqual([418, 'kept', 'short and stout']);
    const [request] = app.received('/front?q=1');
    expect(request).toMatchObject({ method: 'PUT', body: 'payload', headers: { 'x-mine': 'kept', host: new URL(front.url).host } });
    expect(Object.keys(request?.headers ?? {}).filter((name) => /^x-(appengine|google)-/.test(name))).toEqual([]);
  });

  test('passes large bodies both ways and answers 502 where no app listens', async () => {
    const body = 'x'.repeat(3_000_000);
    app.answer('/large', (answer) => void answer.end(body));
    const answer = await fetch(`${front.url}/large`, { method: 'POST', body });
    expect((await answer.text()).length).toBe(3_000_000);
    expect(app.received('/large')[0]?.body.length).toBe(3_000_000);
    const lost = await createAppEngineFront({ target: 'http://127.0.0.1:1' });
    expect((await fetch(lost.url)).status).toBe(502);
    await lost.close();
  });
});
