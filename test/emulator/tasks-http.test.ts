import { createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { codeOf, type QueueConfig, seconds, startTasksStack, type TaskRequest } from '../support/tasks-stack.ts';

const stack = await startTasksStack();
const other = await startTasksStack();
const { app, client, createQueue, createTask, identity, time } = stack;
afterAll(stack.close);
afterAll(other.close);

const headersOf = (path: string) => app.received(path)[0]?.headers ?? {};
const createHttpTask = (queue: string, url: string, httpRequest: TaskRequest['httpRequest'] = {}, id?: string) =>
  createTask(queue, '', { ...(id !== undefined && { id }), appEngineHttpRequest: null, httpRequest: { url, ...httpRequest } });
const gaps = (path: string) => {
  const atMs = app.received(path).map((request) => request.atMs);
  return atMs.slice(1).map((ms, index) => (ms - (atMs[index] ?? 0)) / 1000);
};

describe('Cloud Tasks, HTTP requests', () => {
  test('go to their URL with X-CloudTasks headers, the fixed User-Agent and no Content-Type of their own', async () => {
    const queue = await createQueue('http');
    const headers = { 'User-Agent': 'mine/1', 'X-CloudTasks-QueueName': 'forged', 'X-Mine': 'kept' };
    const task = await createHttpTask(queue, `${app.url}/http`, { httpMethod: 'PATCH', body: Buffer.from('payload'), headers }, 'h1');
    expect(task.dispatchDeadline).toMatchObject({ seconds: '600' });
    await time.advance(0);
    expect(app.received('/http')[0]).toMatchObject({ method: 'PATCH', body: 'payload' });
    expect(headersOf('/http')).toMatchObject({
      'x-cloudtasks-queuename': 'http',
      'x-cloudtasks-taskname': 'h1',
      'x-cloudtasks-taskretrycount': '0',
      'x-cloudtasks-taskexecutioncount': '0',
      'x-cloudtasks-tasketa': (time.nowMs() / 1000).toFixed(6),
      'user-agent': 'Google-Cloud-Tasks',
      'x-mine': 'kept',
    });
    expect(headersOf('/http')).not.toHaveProperty('content-type');
    expect(headersOf('/http')).not.toHaveProperty('x-appengine-queuename');
  });

  test('carry an OIDC token of the service account for the URL or the audience, which replaces an Authorization of their own', async () => {
    const queue = await createQueue('token');
    const serviceAccountEmail = 'caller@ptk-test.iam.gserviceaccount.com';
    const headers = { Authorization: 'Basic mine' };
    await createHttpTask(queue, `${app.url}/token?a=b`, { headers, oidcToken: { serviceAccountEmail } });
    await createHttpTask(queue, `${app.url}/audience`, { oidcToken: { serviceAccountEmail, audience: 'https://release.example' } });
    // Made once; on a busy machine that takes longer than an advance waits for a task.
    const [key] = (await identity.jwks()).keys;
    await time.advance(0);
    const publicKey = createPublicKey({ key: { ...key } as JsonWebKey, format: 'jwk' });
    const claimsOf = (path: string) => {
      const [, header = '', claims = '', signature = ''] = /^Bearer (.+)\.(.+)\.(.+)$/.exec(String(headersOf(path).authorization)) ?? [];
      const isSigned = verify('RSA-SHA256', Buffer.from(`${header}.${claims}`), publicKey, Buffer.from(signature, 'base64url'));
      return { isSigned, ...JSON.parse(Buffer.from(claims, 'base64url').toString()) };
    };
    expect(claimsOf('/token?a=b')).toMatchObject({ isSigned: true, aud: `${app.url}/token?a=b`, email: serviceAccountEmail });
    expect(claimsOf('/audience')).toMatchObject({ isSigned: true, aud: 'https://release.example', email: serviceAccountEmail });
  });

  test('with a token for nobody are refused; IAM is not supported, which is said', async () => {
    const queue = await createQueue('tokenless');
    expect(await codeOf(createHttpTask(queue, app.url, { oidcToken: { audience: 'a' } }))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(client.getIamPolicy({ resource: queue }))).toBe('UNIMPLEMENTED');
  });

  test('reach a port that browsers refuse as a failed attempt, and are tried again', async () => {
    const queue = await createQueue('refused');
    const { name } = await createHttpTask(queue, 'http://127.0.0.1:1/');
    await time.advance(100);
    const [task] = await client.getTask({ name: name ?? '' });
    expect(task).toMatchObject({ dispatchCount: 2, responseCount: 0, lastAttempt: { responseStatus: { code: 14 } } });
    expect(task.lastAttempt?.responseStatus?.message).toContain('ECONNREFUSED');
    await client.purgeQueue({ name: queue });
  });
});

describe('Cloud Tasks, HTTP targets that are overloaded', () => {
  const config: QueueConfig = { retryConfig: { minBackoff: seconds(10), maxBackoff: seconds(300), maxDoublings: 3 } };
  const refuse = async (path: string, status: number, headers: Record<string, string> = {}) => {
    const queue = await createQueue(path.replaceAll('/', ''), config);
    app.answer(path, (answer, attempt) => void answer.writeHead(attempt < 2 ? status : 200, headers).end());
    await createHttpTask(queue, app.url + path);
    await time.advance(3_600_000);
    return gaps(path);
  };

  test('429 and 503 wait one step longer than other failures', async () => {
    expect(await refuse('/overload/500', 500)).toEqual([10, 20]);
    expect(await refuse('/overload/429', 429)).toEqual([20, 40]);
    expect(await refuse('/overload/503', 503)).toEqual([20, 40]);
  });

  test('a Retry-After in seconds or as a date is waited for, within the queue’s highest wait; one in the past or unreadable is not', async () => {
    const nextFull = () => Math.ceil(time.nowMs() / 1000) * 1000;
    expect(await refuse('/after/seconds', 429, { 'retry-after': '90' })).toEqual([90, 90]);
    expect(await refuse('/after/long', 503, { 'retry-after': '86400' })).toEqual([300, 300]);
    expect(await refuse('/after/past', 503, { 'retry-after': new Date(0).toUTCString() })).toEqual([20, 40]);
    expect(await refuse('/after/nonsense', 503, { 'retry-after': 'soon' })).toEqual([20, 40]);
    await time.advance(nextFull() - time.nowMs());
    const date = new Date(time.nowMs() + 100_000).toUTCString();
    expect(await refuse('/after/date', 503, { 'retry-after': date })).toEqual([100, 40]);
  });

  test('a Retry-After of another failure is not heeded, nor is one of an App Engine app', async () => {
    expect(await refuse('/unheeded', 500, { 'retry-after': '90' })).toEqual([10, 20]);
    const queue = await createQueue('app-engine', config);
    app.answer('/app-engine', (answer, attempt) => void answer.writeHead(attempt === 0 ? 503 : 200, { 'retry-after': '90' }).end());
    await createTask(queue, '/app-engine');
    await time.advance(3_600_000);
    expect(gaps('/app-engine')).toEqual([10]);
  });
});

describe('Cloud Tasks, redirects of HTTP targets', () => {
  test.each([
    { status: 301, method: 'POST', arrives: 'GET', body: '' },
    { status: 302, method: 'PUT', arrives: 'PUT', body: 'payload' },
    { status: 303, method: 'PUT', arrives: 'GET', body: '' },
    { status: 307, method: 'POST', arrives: 'POST', body: 'payload' },
    { status: 308, method: 'PATCH', arrives: 'PATCH', body: 'payload' },
  ] as const)('$status of a $method is followed with $arrives, within one attempt', async ({ status, method, arrives, body }) => {
    const path = `/from/${status}`;
    const queue = await createQueue(`redirect-${status}`);
    app.answer(path, (answer) => void answer.writeHead(status, { location: `/to/${status}` }).end());
    const { name } = await createHttpTask(queue, app.url + path, { httpMethod: method, body: Buffer.from('payload') });
    await time.advance(0);
    expect(app.received(`/to/${status}`)).toMatchObject([{ method: arrives, body, headers: { 'x-cloudtasks-taskretrycount': '0' } }]);
    expect(await codeOf(client.getTask({ name: name ?? '' }))).toBe('FAILED_PRECONDITION');
  });

  test('a token is not carried to another origin', async () => {
    const queue = await createQueue('origins');
    app.answer('/origins/home', (answer) => void answer.writeHead(307, { location: '/origins/away' }).end());
    app.answer('/origins/away', (answer) => void answer.writeHead(307, { location: `${other.app.url}/origins` }).end());
    await createHttpTask(queue, `${app.url}/origins/home`, { oidcToken: { serviceAccountEmail: 'a@b.example' } });
    await time.advance(0);
    expect(headersOf('/origins/away')).toHaveProperty('authorization');
    expect(other.app.received('/origins')).toHaveLength(1);
    expect(other.app.received('/origins')[0]?.headers).not.toHaveProperty('authorization');
  });

  test('a circle, a redirect without a place and one to another scheme are failures', async () => {
    const queue = await createQueue('circles', { retryConfig: { maxAttempts: 1 } });
    app.answer('/circle', (answer) => void answer.writeHead(302, { location: '/circle' }).end());
    app.answerStatus('/nowhere', 302);
    app.answer('/scheme', (answer) => void answer.writeHead(302, { location: 'ftp://host/' }).end());
    for (const path of ['/circle', '/nowhere', '/scheme']) await createHttpTask(queue, app.url + path);
    await time.advance(0);
    expect(['/circle', '/nowhere', '/scheme'].map((path) => app.received(path).length)).toEqual([11, 1, 1]);
    expect(stack.emulator.pending(queue)).toEqual([]);
  });
});
