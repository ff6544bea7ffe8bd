import { afterAll, describe, expect, test } from 'vitest';
import { statement } from '../support/targets.ts';
import { codeOf, startTasksStack } from '../support/tasks-stack.ts';

const stack = await startTasksStack();
const { app, client, createQueue, createTask, location, target, time } = stack;
afterAll(stack.close);

const hourMs = 3_600_000;

describe('Cloud Tasks, names', () => {
  statement(target, 2, 'a client with an endpoint, a port and insecure credentials creates a queue and a task', async () => {
    const queue = await createQueue('wired');
    const task = await createTask(queue, '/wired');
    expect(task.name).toMatch(/^projects\/ptk-test\/locations\/europe-west1\/queues\/wired\/tasks\/\d{10,20}$/);
    await time.advance(0);
    expect(app.received('/wired')).toHaveLength(1);
  });

  statement(target, 80, 'a task name is taken while the task lives and for an hour after success, failure or delete', async () => {
    const queue = await createQueue('named', { retryConfig: { maxAttempts: 1 } });
    app.answerStatus('/named/failure', 500);
    const ids = ['success', 'failure', 'delete'];
    for (const id of ids) {
      await createTask(queue, `/named/${id}`, { id, scheduleTime: { seconds: time.nowMs() / 1000 + 60 } });
    }
    const again = () => Promise.all(ids.map((id) => codeOf(createTask(queue, `/named/${id}`, { id }))));
    expect(await again()).toEqual(['ALREADY_EXISTS', 'ALREADY_EXISTS', 'ALREADY_EXISTS']);
    await client.deleteTask({ name: `${queue}/tasks/delete` });
    await time.advance(60_000);
    expect(ids.map((id) => app.received(`/named/${id}`).length)).toEqual([1, 1, 0]);
    expect(await again()).toEqual(['ALREADY_EXISTS', 'ALREADY_EXISTS', 'ALREADY_EXISTS']);
    await time.advance(hourMs - 60_001);
    expect(await again()).toEqual(['ALREADY_EXISTS', 'ALREADY_EXISTS', 'ALREADY_EXISTS']);
    await time.advance(1);
    expect(await codeOf(createTask(queue, '/named/delete', { id: 'delete' }))).toBe('OK');
    await time.advance(59_999);
    expect(await codeOf(createTask(queue, '/named/success', { id: 'success' }))).toBe('ALREADY_EXISTS');
    await time.advance(1);
    expect(await codeOf(createTask(queue, '/named/success', { id: 'success' }))).toBe('OK');
    expect(await codeOf(createTask(queue, '/named/failure', { id: 'failure' }))).toBe('OK');
  });

  statement(
    target,
    81,
    'a finished task is a failed precondition to read and not found to delete or run; an unknown one is not found',
    async () => {
      const queue = await createQueue('finished');
      await createTask(queue, '/finished', { id: 'done' });
      await time.advance(0);
      const codes = (name: string) =>
        Promise.all([codeOf(client.getTask({ name })), codeOf(client.deleteTask({ name })), codeOf(client.runTask({ name }))]);
      expect(await codes(`${queue}/tasks/done`)).toEqual(['FAILED_PRECONDITION', 'NOT_FOUND', 'NOT_FOUND']);
      expect(await codes(`${queue}/tasks/never`)).toEqual(['NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND']);
      await time.advance(hourMs);
      expect(await codes(`${queue}/tasks/done`)).toEqual(['NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND']);
    },
  );

  statement(target, 82, 'the name of a deleted queue is refused for seven days, to create the queue and to add a task', async () => {
    const queue = await createQueue('deleted');
    await createTask(queue, '/deleted', { scheduleTime: { seconds: time.nowMs() / 1000 + 60 } });
    await client.deleteQueue({ name: queue });
    const codes = () =>
      Promise.all([codeOf(createQueue('deleted')), codeOf(createTask(queue, '/deleted')), codeOf(client.getQueue({ name: queue }))]);
    expect(await codes()).toEqual(['FAILED_PRECONDITION', 'FAILED_PRECONDITION', 'NOT_FOUND']);
    await time.advance(7 * 24 * hourMs - 1);
    expect(await codes()).toEqual(['FAILED_PRECONDITION', 'FAILED_PRECONDITION', 'NOT_FOUND']);
    expect(app.received('/deleted')).toEqual([]);
    await time.advance(1);
    expect(await codeOf(createTask(queue, '/deleted'))).toBe('NOT_FOUND');
    expect(await codeOf(createQueue('deleted'))).toBe('OK');
  });

  test('two calls at once with one task name make one task', async () => {
    const queue = await createQueue('raced');
    const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf(createTask(queue, '/raced', { id: 'one' }))));
    expect(codes.filter((code) => code === 'OK')).toHaveLength(1);
    expect(codes.filter((code) => code === 'ALREADY_EXISTS')).toHaveLength(19);
    await time.advance(0);
    expect(app.received('/raced')).toHaveLength(1);
  });

  test('a queue that is there already is refused, and one that never was is not found', async () => {
    await createQueue('once');
    expect(await codeOf(createQueue('once'))).toBe('ALREADY_EXISTS');
    expect(await codeOf(createTask(`${location}/queues/never`, '/never'))).toBe('NOT_FOUND');
    expect(await codeOf(client.listTasks({ parent: `${location}/queues/never` }))).toBe('NOT_FOUND');
  });
});
