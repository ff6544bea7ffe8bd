import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import type { CloudTasksClient } from '@google-cloud/tasks';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { runDelay } from '../../src/cli/delay.ts';
import { freePort, untilAnswers } from '../../src/cli/demo/processes.ts';
import { type ManualTime, manualTime } from '../../src/emulator/time.ts';
import { calendar } from '../../src/shared/adapters/calendar.ts';
import { cloudTasksClient, cloudTasksScheduler } from '../../src/shared/adapters/cloud-tasks.ts';
import { firestoreDelayLedger, firestorePayloadStore } from '../../src/shared/adapters/firestore-delays.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createDelays } from '../../src/shared/delay/delays.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { type Inbox, listenTo } from '../support/received.ts';
import { firestoreClient } from '../support/targets.ts';

const projectId = 'ptk-delay-command';
const location = `projects/${projectId}/locations/local`;
const [q, r] = [`${location}/queues/q`, `${location}/queues/r`];
const root = fileURLToPath(new URL('../../', import.meta.url));
const minute = 60_000;
let emulator: Backend;
let time: ManualTime;
let env: Record<string, string>;
let pubsub: PubSub;
let db: Firestore;
let tasks: CloudTasksClient;
let appEngine: ChildProcess;
let final: Inbox;

beforeAll(async () => {
  // What the services hold is due five hours before the clock of App Engine says so: so late is each message.
  time = manualTime(Date.now() - 300 * minute);
  const port = String(await freePort());
  emulator = await startBackend({ time, appEngineUrl: `http://127.0.0.1:${port}` });
  const own = { PATH: process.env.PATH ?? '', METADATA_SERVER_DETECTION: 'none' };
  // The clients of Firestore and Pub/Sub look into the environment of their process.
  for (const [name, value] of Object.entries(emulator.env)) vi.stubEnv(name, value);
  env = { ...own, ...emulator.env, GOOGLE_CLOUD_PROJECT: projectId, TASK_QUEUES: q };
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  db = firestoreClient(emulator.firestore.address, projectId);
  tasks = cloudTasksClient(projectId, emulator.tasks.address);
  for (const name of [q, r]) await tasks.createQueue({ parent: location, queue: { name } });
  await pubsub.createTopic('final');
  final = await listenTo(pubsub, 'final');
  const cwd = `${root}dist/deploy/appengine`;
  const variables = { ...env, FINAL_TOPIC: 'final', TASK_QUEUES: `${q},${r}`, PORT: port };
  appEngine = spawn(process.execPath, ['app.mjs'], { cwd, env: variables, stdio: 'ignore' });
  await untilAnswers(`http://127.0.0.1:${port}/healthz`);
});

afterAll(async () => {
  appEngine.kill('SIGKILL');
  await Promise.all([final.close(), tasks.close(), db.terminate(), pubsub.close()]);
  await emulator.close();
  vi.unstubAllEnvs();
});

/** The command as a process of its own: its exit code, and what it prints. */
async function command(args: readonly string[], more: Record<string, string> = {}): Promise<readonly [number, string]> {
  const options = { cwd: root, env: { ...env, ...more } };
  return promisify(execFile)(process.execPath, ['src/cli/main.ts', 'delay', ...args], options).then(
    ({ stdout }) => [0, stdout.trim()],
    (error: { code: number; stdout: string; stderr: string }) => [error.code, (error.stdout + error.stderr).trim()],
  );
}

/** The command in this process, which is quicker: its exit code, and the object of each line of JSON. */
async function told(args: readonly string[], more: Record<string, string> = {}) {
  const objects: unknown[] = [];
  const code = await runDelay([...args, '--json'], { ...env, ...more }, (line: string) => void objects.push(JSON.parse(line).delay));
  return [code, ...objects] as const;
}

/** Under the id, due so many minutes later by the clock of the services. */
async function schedule(id: string, queue: string, inMinutes = 10): Promise<number> {
  const delays = createDelays({
    ledger: firestoreDelayLedger(db, system.clock),
    payloads: firestorePayloadStore(db, system.clock),
    scheduler: cloudTasksScheduler({ client: tasks, release: {}, system }),
    queues: [queue],
    publisher: { publish: () => Promise.reject(new Error('unused')) },
    finalTopic: 'final',
    calendar,
    system,
    log: silentLog,
  });
  const dueAtMs = time.nowMs() + inMinutes * minute;
  await delays.schedule({ key: id, data: Buffer.from(id) }, { id, at: dueAtMs });
  return dueAtMs;
}

/** What has come, each message as often as it did, once there are so many. */
async function come(messages: number): Promise<string[]> {
  await final.count(messages);
  await emulator.untilEmpty();
  return final.messages.map(({ data }) => data.toString());
}

const ledger = (pending: number, fired: number, overdue: number) => ({ pending, releasing: 0, fired, cancelled: 0, overdue });

describe('pubsub-toolkit delay', () => {
  test('tells of a paused queue and of what is overdue, until the queue goes on', async () => {
    const dueAtMs = await schedule('paused', q);
    expect(await told(['status'])).toMatchObject([0, { queues: [{ queue: q, state: 'running' }], ledger: ledger(1, 0, 0) }]);
    await tasks.pauseQueue({ name: q });
    await time.advance(11 * minute + 1);
    expect(await command(['status', '--hours', '1'])).toEqual([
      1,
      expect.stringMatching(
        /^queue .*\/q: paused\nledger: 1 pending, 0 releasing, 0 fired, 0 cancelled; 1 overdue\nsince 20.*:00:00\.000Z: 0 published$/,
      ),
    ]);
    expect(await told(['repair'])).toMatchObject([0, { checked: 1, rearmed: 0, overdue: 1, failed: 0 }]);
    await tasks.resumeQueue({ name: q });
    await time.advance(0);
    expect(await come(1)).toEqual(['paused']);
    expect(await told(['get', 'paused'])).toMatchObject([0, { id: 'paused', state: 'fired', dueAtMs, messageId: expect.any(String) }]);
  });

  test('gives what a purge took a task again, and the message comes once, when it is due', async () => {
    const dueAtMs = await schedule('purged', q);
    await tasks.purgeQueue({ name: q });
    await time.advance(minute);
    expect(await told(['repair'])).toMatchObject([0, { checked: 1, rearmed: 1, failed: 0 }]);
    await time.advance(minute);
    expect(await told(['repair'])).toMatchObject([0, { checked: 1, rearmed: 0, failed: 0 }]);
    await time.advance(dueAtMs - time.nowMs() - 1);
    expect(await come(1)).toEqual(['paused']);
    await time.advance(1);
    expect(await come(2)).toEqual(['paused', 'purged']);
  });

  test('tells of a queue that is gone, and moves what it held to one that is there', async () => {
    const dueAtMs = await schedule('gone', q);
    await tasks.deleteQueue({ name: q });
    expect(await told(['status'])).toMatchObject([1, { queues: [{ queue: q, state: 'missing' }], ledger: ledger(1, 2, 0) }]);
    await time.advance(minute);
    expect(await command(['repair'])).toEqual([
      1,
      `queue ${q}: missing\nlooked at 1, gave 0 a task again, 0 overdue though they have one, 1 failed`,
    ]);
    await time.advance(minute);
    expect(await told(['repair'], { TASK_QUEUES: r })).toMatchObject([0, { queues: [{ state: 'running' }], rearmed: 1, failed: 0 }]);
    await time.advance(dueAtMs - time.nowMs());
    expect(await come(3)).toEqual(['paused', 'purged', 'gone']);
    await time.advance(20 * minute);
    expect(await come(3)).toEqual(['paused', 'purged', 'gone']);
  });

  test('lists, moves and cancels what is delayed, and refuses what has an end', async () => {
    env.TASK_QUEUES = r;
    const dueAtMs = await schedule('order-17', r, 30);
    await schedule('order/18', r, 31);
    expect(await told(['list'])).toMatchObject([0, { id: 'order-17', state: 'pending', dueAtMs }, { id: 'order/18', generation: 1 }]);
    const at = new Date(dueAtMs - 20 * minute).toISOString();
    const rescheduled = { outcome: 'rescheduled', dueAtMs: dueAtMs - 20 * minute, generation: 2 };
    expect(await told(['reschedule', 'order-17', '--at', at])).toEqual([0, rescheduled]);
    expect(await told(['cancel', 'order/18'])).toEqual([0, { outcome: 'cancelled', wasKnown: true }]);
    expect(await told(['cancel', 'nobody'])).toEqual([0, { outcome: 'cancelled', wasKnown: false }]);
    expect(await command(['list'])).toEqual([0, `"order-17": pending, due ${at}, generation 2, to final`]);
    await time.advance(10 * minute);
    const all = ['paused', 'purged', 'gone', 'order-17'];
    expect(await come(4)).toEqual(all);
    await time.advance(21 * minute);
    expect(await come(4)).toEqual(all);
    expect(await command(['cancel', 'order-17'])).toEqual([1, 'refused: "order-17" was published, or will be']);
    expect(await told(['reschedule', 'order/18', '--at', at])).toEqual([1, { outcome: 'cancelled' }]);
    expect(await told(['get', 'order-19'])).toEqual([1, { outcome: 'unknown' }]);
    expect(await told(['list', '--state', 'releasing'])).toEqual([0]);
  });

  test('tells how late messages were, as App Engine wrote it down before it ended', async () => {
    const startedAtMs = performance.now();
    appEngine.kill('SIGTERM');
    expect(await once(appEngine, 'exit')).toEqual([0, null]);
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
    const sixHoursMs = 21_600_000;
    expect(await told(['status'])).toMatchObject([
      0,
      {
        ledger: { pending: 0, releasing: 0, fired: 4, cancelled: 2, overdue: 0 },
        lateness: { count: 4, p50Ms: sixHoursMs, p99Ms: sixHoursMs, highestMs: sixHoursMs },
      },
    ]);
  });
});
