import { afterAll, describe, expect, test } from 'vitest';
import { backoffMs, decideRetry, type RetryPolicy } from '../../src/emulator/tasks/retry.ts';
import { statement } from '../support/targets.ts';
import { codeOf, type QueueConfig, seconds, startTasksStack } from '../support/tasks-stack.ts';

const stack = await startTasksStack();
const { app, client, createQueue, createTask, target, time } = stack;
const appless = await startTasksStack({ withoutApp: true });
afterAll(stack.close);
afterAll(appless.close);

/** The example in the comments of queue.proto. */
const example: QueueConfig = {
  retryConfig: { maxAttempts: -1, minBackoff: seconds(10), maxBackoff: seconds(300), maxDoublings: 3 },
};
const policy: RetryPolicy = { maxAttempts: 3, maxRetryMs: 0, minBackoffMs: 10_000, maxBackoffMs: 300_000, maxDoublings: 3 };
const gaps = (path: string) => {
  const atMs = app.received(path).map((request) => request.atMs);
  return atMs.slice(1).map((ms, index) => (ms - (atMs[index] ?? 0)) / 1000);
};

describe('Cloud Tasks, the decision to retry', () => {
  test('waits 10, 20, 40, 80, 160, 240, 300, 300 s with three doublings from 10 s up to 300 s', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8].map((retry) => backoffMs(retry, policy) / 1000)).toEqual([10, 20, 40, 80, 160, 240, 300, 300]);
  });

  test('no wait stays none after any number of doublings', () => {
    const waits = [1, 1_000, 5_000].map((retry) => backoffMs(retry, { ...policy, minBackoffMs: 0, maxDoublings: 10_000 }));
    expect(waits).toEqual([0, 0, 0]);
  });

  test.each([
    { attempts: 2, maxAttempts: 3, maxRetryMs: 0, ageMs: 0, expected: 'retry' },
    { attempts: 3, maxAttempts: 3, maxRetryMs: 0, ageMs: 0, expected: 'exhausted' },
    { attempts: 3, maxAttempts: 3, maxRetryMs: 60_000, ageMs: 59_999, expected: 'retry' },
    { attempts: 3, maxAttempts: 3, maxRetryMs: 60_000, ageMs: 60_000, expected: 'exhausted' },
    { attempts: 2, maxAttempts: 3, maxRetryMs: 60_000, ageMs: 60_000, expected: 'retry' },
    { attempts: 999, maxAttempts: -1, maxRetryMs: 0, ageMs: 0, expected: 'retry' },
    { attempts: 1, maxAttempts: -1, maxRetryMs: 0, ageMs: 31 * 86_400_000 - 10_001, expected: 'retry' },
    { attempts: 1, maxAttempts: -1, maxRetryMs: 0, ageMs: 31 * 86_400_000 - 10_000, expected: 'exhausted' },
  ])(
    '$attempts attempts of $maxAttempts, $ageMs ms of $maxRetryMs: $expected',
    ({ attempts, maxAttempts, maxRetryMs, ageMs, expected }) => {
      const task = { attempts, createdAtMs: 0, firstAttemptAtMs: 0, nowMs: ageMs };
      expect(decideRetry(task, { ...policy, maxAttempts, maxRetryMs }).kind).toBe(expected);
    },
  );
});

describe('Cloud Tasks, retries', () => {
  statement(
    target,
    86,
    'RetryCount counts attempts, ExecutionCount answers, and PreviousResponse is there from the second on',
    async () => {
      const queue = await createQueue('counted', { retryConfig: { minBackoff: seconds(1), maxDoublings: 1 } });
      app.answer('/counted', (answer, attempt) => {
        if (attempt === 1) answer.destroy();
        else answer.writeHead(attempt === 3 ? 200 : 503).end();
      });
      await createTask(queue, '/counted');
      await time.advance(60_000);
      const header = (name: string) => app.received('/counted').map(({ headers }) => headers[`x-appengine-task${name}`]);
      expect(header('retrycount')).toEqual(['0', '1', '2', '3']);
      expect(header('executioncount')).toEqual(['0', '1', '1', '2']);
      expect(header('previousresponse')).toEqual([undefined, '503', undefined, '503']);
    },
  );

  statement(target, 87, '200, 204 and 299 are a success', async () => {
    const queue = await createQueue('succeeds');
    for (const code of [200, 204, 299]) {
      app.answerStatus(`/succeeds/${code}`, code);
      await createTask(queue, `/succeeds/${code}`);
    }
    await time.advance(3_600_000);
    expect([200, 204, 299].map((code) => app.received(`/succeeds/${code}`).length)).toEqual([1, 1, 1]);
  });

  statement(target, 87, '300, 302, 404, 429, 500 and 503 are retried, and a redirect is not followed', async () => {
    const queue = await createQueue('fails', { retryConfig: { minBackoff: seconds(1) } });
    const codes = [300, 302, 404, 429, 500, 503];
    for (const code of codes) {
      app.answer(`/fails/${code}`, (answer, attempt) => void answer.writeHead(attempt === 0 ? code : 200, { location: '/moved' }).end());
      await createTask(queue, `/fails/${code}`);
    }
    await time.advance(1000);
    expect(codes.map((code) => gaps(`/fails/${code}`))).toEqual(codes.map(() => [1]));
    expect(app.received('/moved')).toEqual([]);
  });

  statement(target, 87, '199 is an answer and none of success, where the app ends the connection after it', async () => {
    const queue = await createQueue('below', { retryConfig: { minBackoff: seconds(1) } });
    app.answer('/below', (answer, attempt) => void (attempt === 0 ? answer.socket?.end('HTTP/1.1 199 Odd\r\n\r\n') : answer.end()));
    const { name } = await createTask(queue, '/below');
    await time.advance(0);
    const [task] = await client.getTask({ name: name ?? '' });
    expect(task).toMatchObject({ responseCount: 1, lastAttempt: { responseStatus: { code: 2, message: 'HTTP status code 199' } } });
    await time.advance(1000);
    expect(gaps('/below')).toEqual([1]);
    expect(app.received('/below')[1]?.headers['x-appengine-taskpreviousresponse']).toBe('199');
  });

  statement(target, 87, 'an answer of 102 is not the last one: what follows decides', async () => {
    const queue = await createQueue('processing', { retryConfig: { minBackoff: seconds(1) } });
    app.answer('/processing', (answer) => {
      answer.writeProcessing();
      answer.end();
    });
    await createTask(queue, '/processing');
    await time.advance(3_600_000);
    expect(app.received('/processing')).toHaveLength(1);
  });

  statement(target, 87, 'silence up to the dispatch deadline is a failed attempt and retried', async () => {
    const queue = await createQueue('silent', { retryConfig: { minBackoff: seconds(1) } });
    app.answer('/silent', (answer, attempt) => void (attempt === 0 || answer.end()));
    const { name } = await createTask(queue, '/silent', { dispatchDeadline: seconds(15) });
    await time.advance(15_000);
    const [silent] = await client.getTask({ name: name ?? '' });
    expect(silent).toMatchObject({ dispatchCount: 1, responseCount: 0, lastAttempt: { responseTime: null, responseStatus: { code: 4 } } });
    await time.advance(1000);
    expect(gaps('/silent')).toEqual([16]);
  });

  statement(target, 87, 'the waits are 10, 20, 40, 80, 160, 240, 300 s for the example of the proto', async () => {
    const queue = await createQueue('waits', example);
    app.answerStatus('/waits', 500, 500, 500, 500, 500, 500, 500, 200);
    await createTask(queue, '/waits');
    await time.advance(3_600_000);
    expect(gaps('/waits')).toEqual([10, 20, 40, 80, 160, 240, 300]);
  });

  statement(target, 88, 'a task has 1, 3 or endless attempts; when they are used up it is gone and its name stays taken', async () => {
    for (const [maxAttempts, expected] of [
      [1, 1],
      [3, 3],
      [-1, 150],
    ] as const) {
      const queue = await createQueue(`attempts${maxAttempts}`, {
        retryConfig: { maxAttempts, maxBackoff: seconds(1), minBackoff: seconds(1) },
      });
      app.answerStatus(`/attempts/${maxAttempts}`, ...Array.from({ length: 149 }, () => 500), 200);
      await createTask(queue, `/attempts/${maxAttempts}`, { id: 'tried' });
      await time.advance(200_000);
      expect(app.received(`/attempts/${maxAttempts}`)).toHaveLength(expected);
      expect(await codeOf(client.getTask({ name: `${queue}/tasks/tried` }))).toBe('FAILED_PRECONDITION');
      expect(await codeOf(createTask(queue, '/', { id: 'tried' }))).toBe('ALREADY_EXISTS');
    }
  });

  statement(target, 88, 'a task goes on until its attempts and its retry time are both used up, whichever is the later', async () => {
    const wait = { minBackoff: seconds(1), maxBackoff: seconds(1) };
    const longer = await createQueue('longer', { retryConfig: { maxAttempts: 2, maxRetryDuration: seconds(5), ...wait } });
    const oftener = await createQueue('oftener', { retryConfig: { maxAttempts: 5, maxRetryDuration: seconds(2), ...wait } });
    app.answerStatus('/longer', 500);
    app.answerStatus('/oftener', 500);
    await createTask(longer, '/longer');
    await createTask(oftener, '/oftener');
    await time.advance(60_000);
    expect(gaps('/longer')).toEqual([1, 1, 1, 1, 1]);
    expect(gaps('/oftener')).toEqual([1, 1, 1, 1]);
  });

  test('changing the queue changes the next wait, and the mask leaves the other settings alone', async () => {
    const queue = await createQueue('changed', example);
    app.answerStatus('/changed', 500, 500, 200);
    await createTask(queue, '/changed');
    await time.advance(0);
    const [updated] = await client.updateQueue({
      queue: { name: queue, retryConfig: { minBackoff: seconds(50), maxDoublings: 9 } },
      updateMask: { paths: ['retry_config.min_backoff'] },
    });
    expect(updated.retryConfig).toMatchObject({ minBackoff: { seconds: '50' }, maxDoublings: 3, maxAttempts: -1 });
    await time.advance(3_600_000);
    expect(gaps('/changed')).toEqual([10, 100]);
  });

  test('without an App Engine app an attempt fails before it reaches an instance, and is retried', async () => {
    const queue = await appless.createQueue('appless');
    const { name } = await appless.createTask(queue, '/appless');
    await appless.time.advance(300);
    const [waiting] = await appless.client.getTask({ name: name ?? '' });
    expect(waiting).toMatchObject({
      dispatchCount: 3,
      responseCount: 0,
      lastAttempt: { responseTime: null, responseStatus: { code: 14 } },
    });
  });
});
