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
    const ms = (count: number) => ({ seconds: Math.floor(count / 1000), nanos: (count % 1000) * 1_000_000 });
    const bad: Record<string, [TaskRequest & { id?: string }, RegExp]> = {
      'an id with a dot': [{ id: 'a.b' }, /task name ".*a\.b".* 500 /],
      'an id of 501 characters': [{ id: 'a'.repeat(501) }, /task name ".* 500 /],
      'the name of another queue': [{ name: `${location}/queues/other/tasks/a` }, /queue name .*strict.*other/],
      'no target': [{ appEngineHttpRequest: null }, /app_engine_http_request or an http_request/],
      'GET with a body': [appEngine({ httpMethod: 'GET', body: Buffer.from('x') }), /body is allowed only with POST, PUT: GET/],
      'PATCH with a body to App Engine': [appEngine({ httpMethod: 'PATCH', body: Buffer.from('x') }), /only with POST, PUT: PATCH/],
      'a relative URI without a slash': [appEngine({ relativeUri: 'release' }), /relativeUri must begin with "\/".*"release"/],
      'a relative URI with a space': [appEngine({ relativeUri: '/a b' }), /relativeUri .*no spaces.*"\/a b"/],
      'a relative URI of 2084 characters': [appEngine({ relativeUri: `/${'a'.repeat(2083)}` }), /relativeUri .*2083 characters/],
      'a header without end in its name': [appEngine({ headers: { [`${'a'.repeat(100_000)} `]: '' } }), /headers hold .*…"$/],
      'an id of a million characters': [{ id: 'a'.repeat(1_000_000) }, /task name .*…".* 500 /],
      'a header with a line break': [appEngine({ headers: { 'X-A': 'a\nb' } }), /headers hold .*"X-A: /],
      'a header that HTTP cannot carry': [appEngine({ headers: { 'X-A': '\u0001' } }), /headers hold .*"X-A: /],
      'an App Engine task a byte above 100 KB': [appEngine({ body: Buffer.alloc(100 * kilobyte) }), /102401 bytes, the limit is 102400/],
      'an HTTP task a byte above 1 MB': [http({ body: Buffer.alloc(1024 * kilobyte - 18) }), /1048577 bytes, the limit is 1048576/],
      'HTTP headers of 80 KB': [
        http({ headers: { 'X-A': 'a'.repeat(80 * kilobyte - 3) } }),
        /headers have 81920 bytes, the limit is 81920/,
      ],
      'a URL of another scheme': [http({ url: 'ftp://host/' }), /url must be .*"ftp:\/\/host\/"/],
      'a URL of 2084 characters': [http({ url: `http://host/${'a'.repeat(2084 - 12)}` }), /url must be .*2083 characters/],
      'a dispatch deadline of 14 s': [{ dispatchDeadline: seconds(14) }, /dispatchDeadline .*15s and 86415s.* 14s/],
      'a dispatch deadline of 14,999 ms': [{ dispatchDeadline: ms(14_999) }, /dispatchDeadline .*15s.* 14\.999s/],
      'a dispatch deadline of 24 h 15,001 ms': [{ dispatchDeadline: ms(86_415_001) }, /dispatchDeadline .*86415s.* 86415\.001s/],
      'a dispatch deadline of 31 min for HTTP': [http({}, { dispatchDeadline: seconds(1860) }), /dispatchDeadline .*1800s.* 1860s/],
      'a dispatch deadline of 30 min and 1 ms for HTTP': [http({}, { dispatchDeadline: ms(1_800_001) }), /dispatchDeadline .*1800\.001s/],
      'a negative dispatch deadline': [{ dispatchDeadline: seconds(-1) }, /dispatchDeadline .*15s.* -1s/],
      'a schedule time that is none': [
        { scheduleTime: { seconds: 1, nanos: 2_000_000_000 } },
        /schedule_time is not a valid time: 1 s and 2000000000 ns/,
      ],
    };
    const refused = Object.entries(bad).map(async ([what, [task, text]]) => {
      const error: Error | undefined = await createTask(queue, '/', task).then(
        () => undefined,
        (error) => error,
      );
      expect(error?.message, what).toMatch(/^3 INVALID_ARGUMENT/);
      expect(error?.message, what).toMatch(text);
    });
    await Promise.all(refused);

    const good: Record<string, TaskRequest & { id?: string }> = {
      'an id of 500 characters': { id: 'a_-9'.repeat(125) },
      'a relative URI of 2083 characters': appEngine({ relativeUri: `/${'a'.repeat(2082)}` }),
      'an App Engine task of 100 KB': appEngine({ body: Buffer.alloc(100 * kilobyte - 1) }),
      'an HTTP task of 1 MB': http({ body: Buffer.alloc(1024 * kilobyte - 19) }),
      'HTTP headers a byte below 80 KB': http({ headers: { 'X-A': 'a'.repeat(80 * kilobyte - 4) } }),
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
    expect(await codeOf(client.getQueue({ name }, { timeout: 30_000 }))).toBe('OK');
    await expect(client.getQueue({ name }, { timeout: 31_000 })).rejects.toThrow(
      /INVALID_ARGUMENT.*deadline is 3\d{4} ms ahead.* 30000 ms/,
    );
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
    const unknown = ['nothing', 'state', 'retry_config.nothing', '', '__proto__', 'constructor', 'x'.repeat(100_000)];
    expect(await Promise.all([...unknown, 'rate_limits'].map((path) => update([path])))).toEqual([
      ...unknown.map(() => 'INVALID_ARGUMENT'),
      'OK',
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
