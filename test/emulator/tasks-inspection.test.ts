import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { atTime, codeOf, startTasksStack } from '../support/tasks-stack.ts';

const stack = await startTasksStack();
const { app, client, createQueue, createTask, emulator, location, time } = stack;
afterAll(stack.close);
beforeEach(() => emulator.reset());

describe('Cloud Tasks, seen from a test', () => {
  test('queues tell their state, how many tasks they hold and how many are under way', async () => {
    app.answer('/held', () => {});
    const busy = await createQueue('busy');
    const paused = await createQueue('paused');
    await client.pauseQueue({ name: paused });
    await createTask(busy, '/held');
    await createTask(busy, '/later', { scheduleTime: atTime(time.nowMs() + 1_000) });
    await createTask(paused, '/paused');
    expect(emulator.queues()).toEqual([
      { name: busy, state: 'RUNNING', tasks: 2, dispatching: 1 },
      { name: paused, state: 'PAUSED', tasks: 1, dispatching: 0 },
    ]);
    expect(emulator.dispatching()).toBe(1);
  });

  test('pending tasks come in order of their instants, with where they go, what they carry and how often they were tried', async () => {
    const queue = await createQueue('pending', { retryConfig: { minBackoff: { seconds: 10 } } });
    const other = await createQueue('other');
    app.answerStatus('/fails', 500);
    const startMs = time.nowMs();
    const body = Buffer.from('payload');
    await createTask(queue, '', {
      id: 'http',
      scheduleTime: atTime(startMs + 60_000),
      appEngineHttpRequest: null,
      httpRequest: { url: 'http://127.0.0.1:1/', body, headers: { 'X-Mine': 'kept' } },
    });
    await createTask(queue, '/fails', { id: 'fails' });
    await createTask(other, '/other', { scheduleTime: atTime(startMs + 5_000), id: 'other' });
    await time.advance(0);
    const http = {
      name: `${queue}/tasks/http`,
      url: 'http://127.0.0.1:1/',
      body,
      headers: { 'X-Mine': 'kept' },
      dueAtMs: startMs + 60_000,
    };
    const failed = { name: `${queue}/tasks/fails`, url: '/fails', dueAtMs: startMs + 10_000, dispatchCount: 1, responseCount: 1 };
    expect(emulator.pending(queue)).toMatchObject([failed, http]);
    expect(emulator.pending().map(({ name }) => name)).toEqual([`${other}/tasks/other`, failed.name, http.name]);
    expect(() => emulator.pending(`${location}/queues/never`)).toThrow(/does not exist/);
  });

  test('a reset forgets queues, tasks, requests under way and every name that was taken', async () => {
    const brokenOff = new Promise<void>((resolve) => app.answer('/reset/held', (answer) => void answer.once('close', resolve)));
    const queue = await createQueue('reset');
    const { name } = await createTask(queue, '/reset/held');
    await createTask(queue, '/reset/done', { id: 'done' });
    await createTask(queue, '/reset/later', { scheduleTime: atTime(time.nowMs() + 1_000) });
    const gone = await createQueue('gone');
    await client.deleteQueue({ name: gone });
    await time.settled();
    emulator.reset();
    await brokenOff;
    expect([emulator.queues(), emulator.pending(), emulator.dispatching()]).toEqual([[], [], 0]);
    expect(await codeOf(client.getQueue({ name: queue }))).toBe('NOT_FOUND');
    await time.advance(3_600_000);
    expect(app.received('/reset/held')).toHaveLength(1);
    expect(app.received('/reset/later')).toEqual([]);

    expect(await Promise.all(['reset', 'gone'].map((id) => codeOf(createQueue(id))))).toEqual(['OK', 'OK']);
    expect(await codeOf(createTask(queue, '/reset/done', { id: 'done' }))).toBe('OK');
    expect((await createTask(queue, '/reset/done')).name).toBe(name);
    await time.advance(0);
    expect(app.received('/reset/done')).toHaveLength(3);
  });

  test('a closed emulator breaks off what is under way and sends nothing more', async () => {
    const closed = await startTasksStack();
    const brokenOff = new Promise<void>((resolve) => closed.app.answer('/closed', (answer) => void answer.once('close', resolve)));
    const queue = await closed.createQueue('closed');
    await closed.createTask(queue, '/closed');
    await closed.createTask(queue, '/closed', { scheduleTime: atTime(closed.time.nowMs() + 1_000) });
    await closed.time.settled();
    closed.emulator.close();
    await brokenOff;
    await closed.time.advance(3_600_000);
    expect(closed.app.received('/closed')).toHaveLength(1);
    await closed.close();
  });
});
