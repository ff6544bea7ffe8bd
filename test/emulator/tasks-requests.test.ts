import grpc from '@grpc/grpc-js';
import { afterAll, describe, expect, test } from 'vitest';
import { statement } from '../support/targets.ts';
import { atTime, codeOf, seconds, startTasksStack, type TaskRequest } from '../support/tasks-stack.ts';

const stack = await startTasksStack();
const { client, createQueue, createTask, location, target, time } = stack;
afterAll(stack.close);

const kilobyte = 1024;

describe('Cloud Tasks, requests', () => {
  statement(target, 4, 'an empty request to any method answers a permanent code, and the server lives on', async () => {
    const raw = new grpc.Client(target.address, grpc.credentials.createInsecure());
    const bytes = (value: Buffer) => value;
    const call = (method: string) =>
      new Promise((resolve, reject) => {
        const path = `/google.cloud.tasks.v2.CloudTasks/${method}`;
        raw.makeUnaryRequest(path, bytes, bytes, Buffer.alloc(0), (error, answer) => (error ? reject(error) : resolve(answer)));
      });
    const queueMethods = ['List', 'Get', 'Create', 'Update', 'Delete', 'Purge', 'Pause', 'Resume'].map((verb) => `${verb}Queue`);
    const taskMethods = ['List', 'Get', 'Create', 'Delete', 'Run'].map((verb) => `${verb}Task`);
    const methods = [...queueMethods, ...taskMethods].map((method) => method.replace(/^List.*/, '$&s'));
    const codes = await Promise.all(methods.map(async (method) => [method, await codeOf(call(method))]));
    expect(codes).toEqual(methods.map((method) => [method, 'INVALID_ARGUMENT']));
    const iam = ['GetIamPolicy', 'SetIamPolicy', 'TestIamPermissions'];
    expect(await Promise.all(iam.map((method) => codeOf(call(method))))).toEqual(iam.map(() => 'UNIMPLEMENTED'));
    raw.close();
    expect(await codeOf(createQueue('alive'))).toBe('OK');
  });

  statement(target, 84, 'a malformed task is an invalid argument', async () => {
    const queue = await createQueue('strict');
    const appEngine = (request: TaskRequest['appEngineHttpRequest']): TaskRequest => ({ appEngineHttpRequest: request ?? null });
    const http = (request: TaskRequest['httpRequest'], task: TaskRequest = {}): TaskRequest => ({
      ...task,
      appEngineHttpRequest: null,
      httpRequest: { url: 'http://127.0.0.1:1/', ...request },
    });
    const scheduleTime = atTime(time.nowMs() + 60_000);
    const bad: Record<string, TaskRequest & { id?: string }> = {
      'an id with a dot': { id: 'a.b' },
      'an id of 501 characters': { id: 'a'.repeat(501) },
      'the name of another queue': { name: `${location}/queues/other/tasks/a` },
      'no target': { appEngineHttpRequest: null },
      'GET with a body': appEngine({ httpMethod: 'GET', body: Buffer.from('x') }),
      'PATCH with a body to App Engine': appEngine({ httpMethod: 'PATCH', body: Buffer.from('x') }),
      'a relative URI without a slash': appEngine({ relativeUri: 'release' }),
      'a relative URI with a space': appEngine({ relativeUri: '/a b' }),
      'a header with a line break': appEngine({ headers: { 'X-A': 'a\nb' } }),
      'an App Engine task above 100 KB': appEngine({ body: Buffer.alloc(100 * kilobyte) }),
      'an HTTP task above 1 MB': http({ body: Buffer.alloc(1024 * kilobyte) }),
      'HTTP headers of 80 KB': http({ headers: { 'X-A': 'a'.repeat(80 * kilobyte - 3) } }),
      'a URL of another scheme': http({ url: 'ftp://host/' }),
      'a URL of 2084 characters': http({ url: `http://host/${'a'.repeat(2084 - 12)}` }),
      'a dispatch deadline of 14 s': { dispatchDeadline: seconds(14) },
      'a dispatch deadline of 24 h 16 s': { dispatchDeadline: seconds(86_416) },
      'a dispatch deadline of 31 min for HTTP': http({}, { dispatchDeadline: seconds(1860) }),
      'a negative dispatch deadline': { dispatchDeadline: seconds(-1) },
      'a schedule time that is none': { scheduleTime: { seconds: 1, nanos: 2_000_000_000 } },
    };
    const codes = await Promise.all(Object.entries(bad).map(async ([what, task]) => [what, await codeOf(createTask(queue, '/', task))]));
    expect(codes.filter(([, code]) => code !== 'INVALID_ARGUMENT')).toEqual([]);

    const good: Record<string, TaskRequest & { id?: string }> = {
      'an id of 500 characters': { id: 'a_-9'.repeat(125) },
      'an App Engine task of 99 KB': appEngine({ body: Buffer.alloc(99 * kilobyte) }),
      'an HTTP task of 1023 KB': http({ body: Buffer.alloc(1023 * kilobyte) }),
      'a URL of 2083 characters': http({ url: `http://host/${'a'.repeat(2083 - 12)}` }),
      'a dispatch deadline of 15 s': { dispatchDeadline: seconds(15) },
      'a dispatch deadline of 24 h 15 s': { dispatchDeadline: seconds(86_415) },
      'a dispatch deadline of 30 min for HTTP': http({}, { dispatchDeadline: seconds(1800) }),
    };
    const taken = await Promise.all(
      Object.entries(good).map(async ([what, task]) => [what, await codeOf(createTask(queue, '/', { ...task, scheduleTime }))]),
    );
    expect(taken.filter(([, code]) => code !== 'OK')).toEqual([]);
  });

  statement(target, 84, 'a call with a deadline more than 30 s ahead is an invalid argument', async () => {
    const name = await createQueue('patient');
    expect(await codeOf(client.getQueue({ name }, { timeout: 29_000 }))).toBe('OK');
    expect(await codeOf(client.getQueue({ name }, { timeout: 60_000 }))).toBe('INVALID_ARGUMENT');
  });

  test('queues have ranges and defaults, and an unknown mask path is refused', async () => {
    const name = await createQueue('ranges');
    const [queue] = await client.getQueue({ name });
    expect(queue).toMatchObject({
      state: 'RUNNING',
      rateLimits: { maxDispatchesPerSecond: 500, maxBurstSize: 100, maxConcurrentDispatches: 1000 },
      retryConfig: { maxAttempts: 100, minBackoff: { nanos: 100_000_000 }, maxBackoff: { seconds: '3600' }, maxDoublings: 16 },
    });
    const update = (paths: string[]) => codeOf(client.updateQueue({ queue: { name }, updateMask: { paths } }));
    expect(await Promise.all(['rate_limits', 'nothing', 'state', 'retry_config.nothing', ''].map((path) => update([path])))).toEqual([
      'OK',
      ...Array(4).fill('INVALID_ARGUMENT'),
    ]);
    const bad = [
      { rateLimits: { maxDispatchesPerSecond: 501 } },
      { rateLimits: { maxDispatchesPerSecond: -1 } },
      { rateLimits: { maxConcurrentDispatches: 5001 } },
      { retryConfig: { maxAttempts: -2 } },
      { retryConfig: { minBackoff: seconds(10), maxBackoff: seconds(9) } },
      { retryConfig: { maxDoublings: -1 } },
      { stackdriverLoggingConfig: { samplingRatio: 1.1 } },
    ];
    expect(await Promise.all(bad.map((config, index) => codeOf(createQueue(`bad${index}`, config))))).toEqual(
      bad.map(() => 'INVALID_ARGUMENT'),
    );
    expect(await codeOf(createQueue('under_score'))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(createQueue('a'.repeat(101)))).toBe('INVALID_ARGUMENT');
  });

  test('UpdateQueue makes a queue that is not there', async () => {
    const [queue] = await client.updateQueue({ queue: { name: `${location}/queues/made`, rateLimits: { maxDispatchesPerSecond: 5 } } });
    expect(queue).toMatchObject({ state: 'RUNNING', rateLimits: { maxDispatchesPerSecond: 5 } });
  });

  statement(target, 90, 'the BASIC view hides the body and FULL shows it; lists come in pages', async () => {
    const queue = await createQueue('listed');
    const scheduleTime = atTime(time.nowMs() + 60_000);
    const appEngineHttpRequest = { relativeUri: '/', body: Buffer.from('secret') };
    const ids = ['a', 'b', 'c', 'd', 'e'];
    for (const id of ids) await createTask(queue, '/', { id, scheduleTime, appEngineHttpRequest });
    const name = `${queue}/tasks/a`;
    const bodies = async (responseView: 'BASIC' | 'FULL') => {
      const [one] = await client.getTask({ name, responseView });
      const [list] = await client.listTasks({ parent: queue, responseView });
      return [one, list[0]].map((task) => [task?.view, String(task?.appEngineHttpRequest?.body)]);
    };
    expect(await bodies('BASIC')).toEqual(Array(2).fill(['BASIC', '']));
    expect(await bodies('FULL')).toEqual(Array(2).fill(['FULL', 'secret']));

    const pages: string[][] = [];
    let pageToken = '';
    do {
      const [page, , answer] = await client.listTasks({ parent: queue, pageSize: 2, pageToken }, { autoPaginate: false });
      pages.push(page.map((task) => task.name?.slice(-1) ?? ''));
      pageToken = answer?.nextPageToken ?? '';
    } while (pageToken);
    expect(pages).toEqual([['a', 'b'], ['c', 'd'], ['e']]);
    const bogus = client.listTasks({ parent: queue, pageToken: 'bogus!' }, { autoPaginate: false });
    expect(await codeOf(bogus)).toBe('INVALID_ARGUMENT');

    await createQueue('listed2');
    const [queues] = await client.listQueues({ parent: location });
    expect(queues.map((item) => item.name)).toEqual(expect.arrayContaining([queue, `${queue}2`]));
    expect(await codeOf(client.listQueues({ parent: location, filter: 'state: PAUSED' }))).toBe('UNIMPLEMENTED');
  });
});
