import { test } from 'vitest';
import { fuzzTimeoutMs } from './fuzz-service.ts';
import { picked, type Steps, walks } from './fuzz-walk.ts';
import { embeddedTasks } from './tasks-targets.ts';
import { wireService } from './wire-client.ts';

const { emulator, time, address } = await embeddedTasks();
const { ask } = wireService('tasks', address);

const parent = 'projects/walk/locations/europe-west1';
const queues = ['one', 'two', 'three'].map((id) => `${parent}/queues/${id}`);
const task = (queue: number, id: number) => `${picked(queues, queue)}/tasks/${id % 8}`;
const spansMs = [1, 100, 1_000, 60_000, 3_600_000, 8 * 86_400_000];
const views = ['BASIC', 'FULL'];
/** Nobody listens there: every attempt fails, and few are made. */
const httpRequest = { url: 'http://127.0.0.1:1/', body: Buffer.from('a') };
const retryConfig = { maxAttempts: 3 };

const steps: Steps = {
  createQueue: ([which]) => ask('CreateQueue', { parent, queue: { name: picked(queues, which), retryConfig } }),
  updateQueue: ([which, rate]) =>
    ask('UpdateQueue', {
      queue: { name: picked(queues, which), retryConfig, rateLimits: { maxDispatchesPerSecond: picked([1, 500], rate) } },
      updateMask: { paths: ['rate_limits', 'retry_config'] },
    }),
  changeQueue: ([which, change]) =>
    ask(picked(['PauseQueue', 'ResumeQueue', 'ResumeQueue', 'PurgeQueue'], change), { name: picked(queues, which) }),
  deleteQueue: ([which, again]) => (again % 5 > 0 ? Promise.resolve(undefined) : ask('DeleteQueue', { name: picked(queues, which) })),
  createTask: ([which, later]) =>
    ask('CreateTask', {
      parent: picked(queues, which),
      task: { httpRequest, scheduleTime: { seconds: Math.floor((time.nowMs() + picked(spansMs, later)) / 1_000) } },
    }),
  createNamedTask: ([which, id, view]) =>
    ask('CreateTask', { parent: picked(queues, which), task: { name: task(which, id), httpRequest }, responseView: picked(views, view) }),
  createAppEngineTask: ([which, id]) =>
    ask('CreateTask', { parent: picked(queues, which), task: { name: task(which, id), appEngineHttpRequest: {} } }),
  getTask: ([which, id, view]) => ask('GetTask', { name: task(which, id), responseView: picked(views, view) }),
  runTask: ([which, id]) => ask('RunTask', { name: task(which, id) }),
  deleteTask: ([which, id]) => ask('DeleteTask', { name: task(which, id) }),
  listTasks: ([which, size]) => ask('ListTasks', { parent: picked(queues, which), pageSize: size % 4 }),
  listQueues: ([size]) => ask('ListQueues', { parent, pageSize: size % 4 }),
  async wait([span]) {
    await time.advance(picked(spansMs, span));
    return undefined;
  },
};

test('a walk of 300 calls to Cloud Tasks meets no defect', { timeout: fuzzTimeoutMs }, () =>
  walks(steps, async () => {
    emulator.reset();
    for (const name of queues) await ask('CreateQueue', { parent, queue: { name, retryConfig } });
  }),
);
