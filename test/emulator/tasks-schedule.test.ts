import { afterAll, describe, expect, test } from 'vitest';
import { statement } from '../support/targets.ts';
import { atTime, codeOf, msOf, startTasksStack } from '../support/tasks-stack.ts';

const stack = await startTasksStack();
const { app, client, createQueue, createTask, emulator, target, time } = stack;
afterAll(stack.close);

const hourMs = 3_600_000;
const arrivals = (path: string) => app.received(path).map(({ atMs }) => atMs);

describe('Cloud Tasks, schedule', () => {
  statement(target, 83, 'a schedule time in the past or absent runs now, and the answer tells the time', async () => {
    const queue = await createQueue('now');
    const absent = await createTask(queue, '/now/absent');
    const past = await createTask(queue, '/now/past', { scheduleTime: atTime(time.nowMs() - hourMs) });
    expect([absent, past].map(({ scheduleTime }) => msOf(scheduleTime))).toEqual([time.nowMs(), time.nowMs()]);
    await time.advance(0);
    expect([...arrivals('/now/absent'), ...arrivals('/now/past')]).toEqual([time.nowMs(), time.nowMs()]);
  });

  statement(target, 83, 'a task 720 h ahead is taken and runs at its time, never earlier; a second further is refused', async () => {
    const queue = await createQueue('far');
    const dueAtMs = time.nowMs() + 720 * hourMs;
    await createTask(queue, '/far', { scheduleTime: atTime(dueAtMs) });
    await expect(createTask(queue, '/far', { scheduleTime: atTime(dueAtMs + 1000) })).rejects.toThrow(
      /INVALID_ARGUMENT.*too far in the future.*no more than 720h/,
    );
    await time.advance(720 * hourMs - 1);
    expect(arrivals('/far')).toEqual([]);
    await time.advance(1);
    expect(arrivals('/far')).toEqual([dueAtMs]);
  });

  test('a delay of 40 s: nothing at 39,999 ms, one request at 40,000, and no more in 30 days', async () => {
    const queue = await createQueue('short');
    const dueAtMs = time.nowMs() + 40_000;
    await createTask(queue, '/short', { scheduleTime: atTime(dueAtMs) });
    await time.advance(39_999);
    expect(arrivals('/short')).toEqual([]);
    await time.advance(1);
    expect(arrivals('/short')).toEqual([dueAtMs]);
    await time.advance(720 * hourMs);
    expect(arrivals('/short')).toEqual([dueAtMs]);
  });

  test('a schedule time keeps its microseconds and is not rounded down', async () => {
    const queue = await createQueue('micros');
    const dueAtMs = time.nowMs() + 1000;
    const { scheduleTime } = await createTask(queue, '/micros', { scheduleTime: { seconds: dueAtMs / 1000, nanos: 500_001_999 } });
    expect(scheduleTime).toMatchObject({ seconds: String(dueAtMs / 1000), nanos: 500_001_000 });
    await time.advance(1500);
    expect(arrivals('/micros')).toEqual([]);
    await time.advance(1);
    expect(arrivals('/micros')).toHaveLength(1);
  });

  test('tasks run in order of their schedule, whatever order they were made in', async () => {
    const queue = await createQueue('order', { rateLimits: { maxConcurrentDispatches: 1 } });
    const startMs = time.nowMs();
    for (const wait of [3, 1, 2]) {
      await createTask(queue, '/order', { scheduleTime: atTime(startMs + wait * 1000), name: `${queue}/tasks/after-${wait}` });
    }
    await time.advance(3000);
    expect(app.received('/order').map(({ headers }) => headers['x-appengine-taskname'])).toEqual(['after-1', 'after-2', 'after-3']);
    expect(arrivals('/order')).toEqual([startMs + 1000, startMs + 2000, startMs + 3000]);
  });

  statement(target, 89, 'a paused queue takes tasks and dispatches none; resume drains it', async () => {
    const queue = await createQueue('paused');
    const [{ state: pausedState }] = await client.pauseQueue({ name: queue });
    expect(pausedState).toBe('PAUSED');
    for (let count = 0; count < 3; count++) await createTask(queue, '/paused');
    await time.advance(hourMs);
    expect(arrivals('/paused')).toEqual([]);
    const [{ state }] = await client.resumeQueue({ name: queue });
    expect(state).toBe('RUNNING');
    await time.advance(0);
    expect(arrivals('/paused')).toHaveLength(3);
  });

  statement(
    target,
    89,
    'RunTask ignores pause and schedule, answers the task as dispatched, and retries from the time of the call',
    async () => {
      const queue = await createQueue('forced', { retryConfig: { minBackoff: { seconds: 10 } } });
      await client.pauseQueue({ name: queue });
      app.answerStatus('/forced', 500, 200);
      const { name } = await createTask(queue, '/forced', { scheduleTime: atTime(time.nowMs() + hourMs) });
      const calledAtMs = time.nowMs();
      const [dispatched] = await client.runTask({ name: name ?? '' });
      expect(dispatched).toMatchObject({ name, dispatchCount: 1, responseCount: 0 });
      await time.advance(0);
      expect(arrivals('/forced')).toEqual([calledAtMs]);
      const [failed] = await client.getTask({ name: name ?? '' });
      expect(failed).toMatchObject({ dispatchCount: 1, responseCount: 1 });
      expect(msOf(failed.scheduleTime)).toBe(calledAtMs + 10_000);
      await client.resumeQueue({ name: queue });
      await time.advance(10_000);
      expect(arrivals('/forced')).toEqual([calledAtMs, calledAtMs + 10_000]);
      expect(await codeOf(client.runTask({ name: name ?? '' }))).toBe('NOT_FOUND');
    },
  );

  test('a task that RunTask took does not run again at its time, neither while its request is under way nor after its success', async () => {
    const queue = await createQueue('taken');
    const held: (() => void)[] = [];
    app.answer('/taken', (answer) => void held.push(() => answer.end()));
    const { name } = await createTask(queue, '/taken', { scheduleTime: atTime(time.nowMs() + 60_000) });
    const calledAtMs = time.nowMs();
    await client.runTask({ name: name ?? '' });
    await time.advance(120_000);
    expect(arrivals('/taken')).toEqual([calledAtMs]);
    held[0]?.();
    await time.advance(2 * hourMs);
    expect(arrivals('/taken')).toEqual([calledAtMs]);
    expect((await client.listTasks({ parent: queue }))[0]).toEqual([]);
  });

  statement(target, 89, 'a purge removes the tasks made before it and none made after', async () => {
    const queue = await createQueue('purged');
    await client.pauseQueue({ name: queue });
    await createTask(queue, '/purged/before', { id: 'before' });
    const [{ purgeTime }] = await client.purgeQueue({ name: queue });
    expect(msOf(purgeTime)).toBe(time.nowMs());
    await createTask(queue, '/purged/after');
    await client.resumeQueue({ name: queue });
    await time.advance(hourMs - 1);
    expect(arrivals('/purged/before')).toEqual([]);
    expect(arrivals('/purged/after')).toHaveLength(1);
    expect(await codeOf(createTask(queue, '/purged/before', { id: 'before' }))).toBe('ALREADY_EXISTS');
  });

  test('a deleted task is not dispatched', async () => {
    const queue = await createQueue('dropped');
    const { name } = await createTask(queue, '/dropped', { scheduleTime: atTime(time.nowMs() + 1000) });
    await client.deleteTask({ name: name ?? '' });
    await time.advance(hourMs);
    expect(arrivals('/dropped')).toEqual([]);
  });

  statement(target, 90, 'one dispatch per second, and one at a time, where the queue says so', async () => {
    const slow = await createQueue('slow', { rateLimits: { maxDispatchesPerSecond: 1 } });
    const startMs = time.nowMs();
    for (let count = 0; count < 4; count++) await createTask(slow, '/slow');
    await time.advance(3000);
    expect(arrivals('/slow')).toEqual([startMs, startMs + 1000, startMs + 2000, startMs + 3000]);

    const single = await createQueue('single', { rateLimits: { maxConcurrentDispatches: 1 } });
    const held: (() => void)[] = [];
    app.answer('/single', (answer) => void held.push(() => answer.end()));
    for (let count = 0; count < 2; count++) await createTask(single, '/single');
    await time.advance(1000);
    expect(arrivals('/single')).toHaveLength(1);
    held[0]?.();
    await time.advance(0);
    expect(arrivals('/single')).toHaveLength(2);
    held[1]?.();
    await time.advance(0);
  });

  test('a burst of 100 goes at once where a queue has 500 per second, and the rest at that rate', async () => {
    const queue = await createQueue('burst');
    await client.pauseQueue({ name: queue });
    await Promise.all(Array.from({ length: 110 }, () => createTask(queue, '/burst')));
    await client.resumeQueue({ name: queue });
    const startMs = time.nowMs();
    // An advance waits only so long for so many answers.
    const answered = (tasks: number) => expect.poll(() => emulator.pending(queue).length).toBe(110 - tasks);
    await answered(100);
    await time.advance(19);
    await answered(109);
    await time.advance(1);
    await answered(110);
    expect(arrivals('/burst').filter((atMs) => atMs === startMs)).toHaveLength(100);
    expect(arrivals('/burst').at(-1)).toBe(startMs + 20);
  });
});
