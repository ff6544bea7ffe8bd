import { afterAll, describe, expect, test } from 'vitest';
import { atTime, codeOf, startTasksStack, type TaskRequest } from '../support/tasks-stack.ts';

const stack = await startTasksStack();
const other = await startTasksStack();
const { app, client, createQueue, createTask, identity, time } = stack;
afterAll(stack.close);
afterAll(other.close);

const serviceAccountEmail = 'caller@ptk-test.iam.gserviceaccount.com';
const cloud = 'https://www.googleapis.com/auth/cloud-platform';
const pubsub = 'https://www.googleapis.com/auth/pubsub';

const createHttpTask = (queue: string, path: string, httpRequest: TaskRequest['httpRequest'], more: TaskRequest = {}) =>
  createTask(queue, '', { ...more, appEngineHttpRequest: null, httpRequest: { url: app.url + path, ...httpRequest } });
const authorizationsAt = (path: string) => app.received(path).map(({ headers }) => headers.authorization ?? '');
const accessAt = (path: string) => authorizationsAt(path).map((value) => identity.accessOf(value.replace(/^Bearer /, '')));

describe('Cloud Tasks, HTTP requests with an access token', () => {
  test('carry one of the service account, of its scope or of cloud-platform, which replaces an Authorization of their own', async () => {
    const queue = await createQueue('oauth');
    await createHttpTask(queue, '/default', { headers: { Authorization: 'Basic mine' }, oauthToken: { serviceAccountEmail } });
    await createHttpTask(queue, '/scope', { oauthToken: { serviceAccountEmail, scope: pubsub } });
    await time.advance(0);
    expect(accessAt('/default')).toEqual([{ email: serviceAccountEmail, scope: cloud }]);
    expect(accessAt('/scope')).toEqual([{ email: serviceAccountEmail, scope: pubsub }]);
  });

  test('get a new one with each attempt, so that none has expired', async () => {
    const queue = await createQueue('attempts', { retryConfig: { minBackoff: { seconds: 3_600 }, maxBackoff: { seconds: 3_600 } } });
    app.answerStatus('/attempts', 500, 200);
    await createHttpTask(queue, '/attempts', { oauthToken: { serviceAccountEmail } }, { scheduleTime: atTime(time.nowMs() + 86_400_000) });
    await time.advance(86_400_000 + 3_600_000);
    expect(accessAt('/attempts')).toEqual([undefined, { email: serviceAccountEmail, scope: cloud }]);
  });

  test('are shown with what they were made with', async () => {
    const queue = await createQueue('shown');
    const later = { scheduleTime: atTime(time.nowMs() + 60_000) };
    const oauthToken = { serviceAccountEmail, scope: pubsub };
    const { name } = await createHttpTask(queue, '/shown', { oauthToken }, later);
    const [task] = await client.getTask({ name: name ?? '' });
    expect(task.httpRequest).toMatchObject({ oauthToken, authorizationHeader: 'oauthToken' });
    await client.purgeQueue({ name: queue });
  });

  test('do not carry it to another origin', async () => {
    const queue = await createQueue('origins');
    app.answer('/home', (answer) => void answer.writeHead(307, { location: `${other.app.url}/away` }).end());
    await createHttpTask(queue, '/home', { oauthToken: { serviceAccountEmail } });
    await time.advance(0);
    expect(accessAt('/home')).toHaveLength(1);
    expect(other.app.received('/away').map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  test('are refused where it would be for nobody', async () => {
    const queue = await createQueue('nobody');
    expect(await codeOf(createHttpTask(queue, '/nobody', { oauthToken: { scope: pubsub } }))).toBe('INVALID_ARGUMENT');
    await time.advance(0);
    expect(app.received('/nobody')).toEqual([]);
  });
});
