import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sqliteJournal } from '../../src/emulator/journal.ts';
import { atTime, codeOf, seconds, startTasksStack } from '../support/tasks-stack.ts';

type Stack = Awaited<ReturnType<typeof startTasksStack>>;

const root = mkdtempSync(join(tmpdir(), 'ptk-tasks-'));
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

let folders = 0;
let first: Stack;
const started: Stack[] = [];
const start = async (folder: string, startAtMs?: number): Promise<Stack> => {
  const stack = await startTasksStack({ journal: sqliteJournal(folder), ...(startAtMs !== undefined && { startAtMs }) });
  started.push(stack);
  return stack;
};
/** A second process on what the first has on disk at this moment, as if that had been killed now. */
const killed = (awayMs = 0): Promise<Stack> => {
  const folder = join(root, `killed-${++folders}`);
  cpSync(join(root, 'first'), folder, { recursive: true });
  return start(folder, first.time.nowMs() + awayMs);
};

beforeAll(async () => {
  first = await start(join(root, 'first'));
});
afterAll(async () => {
  for (const stack of started) await stack.close();
  rmSync(root, { recursive: true });
});

describe('Cloud Tasks, killed and started again on its data', () => {
  test('queues keep their settings and their pause', async () => {
    const config = { rateLimits: { maxDispatchesPerSecond: 7 }, retryConfig: { maxAttempts: 3, minBackoff: seconds(5) } };
    const name = await first.createQueue('settings', config);
    await first.client.pauseQueue({ name });
    const [before] = await first.client.getQueue({ name });
    const second = await killed();
    expect((await second.client.getQueue({ name }))[0]).toEqual(before);
    expect(before).toMatchObject({ state: 'PAUSED', rateLimits: { maxDispatchesPerSecond: 7 } });
    await second.createTask(name, '/settings');
    await second.time.advance(hourMs);
    expect(second.app.received('/settings')).toEqual([]);
  });

  test('a task keeps its due time in the middle of a delay of 30 days, and its body', async () => {
    const queue = await first.createQueue('delayed');
    const dueAtMs = first.time.nowMs() + 30 * dayMs;
    const appEngineHttpRequest = { relativeUri: '/delayed', body: Buffer.from([0, 1, 254, 255]) };
    const { name } = await first.createTask(queue, '', { scheduleTime: atTime(dueAtMs), appEngineHttpRequest });
    const second = await killed(15 * dayMs);
    await second.time.advance(15 * dayMs - 1);
    expect(second.app.received('/delayed')).toEqual([]);
    const [task] = await second.client.getTask({ name: name ?? '', responseView: 'FULL' });
    expect(task.appEngineHttpRequest?.body).toEqual(appEngineHttpRequest.body);
    await second.time.advance(1);
    expect(second.app.received('/delayed').map(({ atMs }) => atMs)).toEqual([dueAtMs]);
  });

  test('a task keeps for whom its access token is to be, and gets one of the process that sends it', async () => {
    const queue = await first.createQueue('oauth');
    const oauthToken = { serviceAccountEmail: 'caller@ptk-test.iam.gserviceaccount.com', scope: 'https://www.googleapis.com/auth/pubsub' };
    await first.createTask(queue, '', {
      scheduleTime: atTime(first.time.nowMs() + hourMs),
      appEngineHttpRequest: null,
      httpRequest: { url: `${first.app.url}/oauth`, oauthToken },
    });
    const second = await killed(hourMs);
    await second.time.advance(0);
    const [token = ''] = first.app.received('/oauth').map(({ headers }) => String(headers.authorization).replace(/^Bearer /, ''));
    expect(second.identity.accessOf(token)).toEqual({ email: oauthToken.serviceAccountEmail, scope: oauthToken.scope });
    expect(first.identity.accessOf(token)).toBeUndefined();
  });

  test('a task that came due meanwhile runs at once', async () => {
    const queue = await first.createQueue('overdue');
    await first.createTask(queue, '/overdue', { scheduleTime: atTime(first.time.nowMs() + 40_000) });
    const second = await killed(hourMs);
    await second.time.advance(0);
    expect(second.app.received('/overdue')).toHaveLength(1);
  });

  test('a task that was being dispatched is dispatched again, also one that RunTask took before its time, and counts the attempt', async () => {
    const queue = await first.createQueue('under-way');
    first.app.answer('/under-way', () => {});
    first.app.answer('/run', () => {});
    await first.createTask(queue, '/under-way');
    const { name } = await first.createTask(queue, '/run', { scheduleTime: atTime(first.time.nowMs() + hourMs) });
    await first.client.runTask({ name: name ?? '' });
    await first.time.advance(0);
    expect([first.app.received('/under-way').length, first.app.received('/run').length]).toEqual([1, 1]);
    const second = await killed();
    await second.time.advance(0);
    const counts = (path: string) => second.app.received(path).map(({ headers }) => headers['x-appengine-taskretrycount']);
    expect([counts('/under-way'), counts('/run')]).toEqual([['1'], ['1']]);
  });

  test('attempts and answers so far count on, and the wait after them holds', async () => {
    const queue = await first.createQueue('tried', { retryConfig: { minBackoff: seconds(10) } });
    first.app.answerStatus('/tried', 500);
    await first.createTask(queue, '/tried');
    await first.time.advance(10_000);
    const second = await killed();
    await second.time.advance(19_999);
    expect(second.app.received('/tried')).toEqual([]);
    await second.time.advance(1);
    expect(second.app.received('/tried')[0]?.headers).toMatchObject({
      'x-appengine-taskretrycount': '2',
      'x-appengine-taskexecutioncount': '2',
      'x-appengine-taskpreviousresponse': '500',
    });
  });

  test('a task that has succeeded or was deleted stays gone, and its name stays taken until the hour is over', async () => {
    const queue = await first.createQueue('gone');
    await first.createTask(queue, '/gone', { id: 'done' });
    await first.createTask(queue, '/gone', { id: 'deleted', scheduleTime: atTime(first.time.nowMs() + 60_000) });
    await first.client.deleteTask({ name: `${queue}/tasks/deleted` });
    await first.time.advance(0);
    // Its answer waits for everything that came before it.
    await first.client.getQueue({ name: queue });
    const second = await killed(hourMs - 1);
    const again = () => Promise.all(['done', 'deleted'].map((id) => codeOf(second.createTask(queue, '/gone', { id }))));
    expect(await again()).toEqual(['ALREADY_EXISTS', 'ALREADY_EXISTS']);
    expect(second.app.received('/gone')).toEqual([]);
    await second.time.advance(1);
    expect(await again()).toEqual(['OK', 'OK']);
  });

  test('the name of a deleted queue stays taken for seven days', async () => {
    const name = await first.createQueue('dropped');
    await first.createTask(name, '/dropped', { scheduleTime: atTime(first.time.nowMs() + 60_000) });
    await first.client.deleteQueue({ name });
    const second = await killed(7 * dayMs - 1);
    expect(await codeOf(second.createQueue('dropped'))).toBe('FAILED_PRECONDITION');
    await second.time.advance(1);
    expect(await codeOf(second.createQueue('dropped'))).toBe('OK');
    expect(second.app.received('/dropped')).toEqual([]);
  });

  test('a purge stays in the past', async () => {
    const queue = await first.createQueue('purged');
    await first.client.pauseQueue({ name: queue });
    await first.createTask(queue, '/purged');
    await first.client.purgeQueue({ name: queue });
    const [{ purgeTime }] = await first.client.getQueue({ name: queue });
    const second = await killed();
    expect((await second.client.getQueue({ name: queue }))[0].purgeTime).toEqual(purgeTime);
    expect(second.emulator.pending(queue)).toEqual([]);
  });

  test('closing in good order keeps what waits and what is under way', async () => {
    const folder = join(root, 'closed');
    const closed = await startTasksStack({ journal: sqliteJournal(folder) });
    const queue = await closed.createQueue('closed');
    closed.app.answer('/closed', () => {});
    const { name } = await closed.createTask(queue, '/closed');
    await closed.createTask(queue, '/closed', { scheduleTime: atTime(closed.time.nowMs() + 1_000) });
    await closed.time.advance(0);
    await closed.close();
    const second = await start(folder, closed.time.nowMs());
    const counts = () => second.app.received('/closed').map(({ headers }) => headers['x-appengine-taskretrycount']);
    await second.time.advance(0);
    expect(counts()).toEqual(['1']);
    await second.time.advance(1_000);
    expect(counts()).toEqual(['1', '0']);
    // The ids that the service makes go on where they were.
    expect((await second.createTask(queue, '/closed')).name).not.toBe(name);
  });

  test('a reset leaves nothing behind for the next process', async () => {
    const folder = join(root, 'reset');
    const reset = await startTasksStack({ journal: sqliteJournal(folder) });
    const queue = await reset.createQueue('reset');
    await reset.createTask(queue, '/reset', { id: 'done' });
    await reset.createTask(queue, '/reset', { scheduleTime: atTime(reset.time.nowMs() + 1_000) });
    await reset.time.advance(0);
    await reset.client.deleteQueue({ name: await reset.createQueue('deleted') });
    reset.emulator.reset();
    await reset.createQueue('reset');
    await reset.close();
    const second = await start(folder);
    expect(second.emulator.queues()).toEqual([{ name: queue, state: 'RUNNING', tasks: 0, dispatching: 0 }]);
    expect(await codeOf(second.createQueue('deleted'))).toBe('OK');
    expect(await codeOf(second.createTask(queue, '/reset', { id: 'done' }))).toBe('OK');
    await second.time.advance(hourMs);
    expect(second.app.received('/reset')).toHaveLength(1);
  });
});
