import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { PubSub } from '@google-cloud/pubsub';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { cloudTasksClient } from '../../src/shared/adapters/cloud-tasks.ts';
import { listenTo } from '../support/received.ts';
import { firestoreClient } from '../support/targets.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const anyPorts = ['--pubsub-port', '0', '--firestore-port', '0', '--tasks-port', '0'];
let command: ChildProcess | undefined;

afterEach(() => {
  // npx hands no SIGKILL on, so its whole group goes.
  if (command?.pid && command.exitCode === null && command.signalCode === null) process.kill(-command.pid, 'SIGKILL');
  command = undefined;
});

/** As a user calls it in a checkout; resolves to the first `lines` lines of what it prints. */
function startCommand(lines: number, ...args: string[]): Promise<string[]> {
  const child = spawn('npx', ['pubsub-toolkit', 'emulator', ...args], { cwd: root, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  command = child;
  return new Promise((resolve) => {
    const printed: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => printed.push(line) === lines && resolve([...printed]));
  });
}

/** Ms from the start of a process until it is ready, without what npx itself takes. */
function readyAfterMs(): Promise<number> {
  const startedAtMs = performance.now();
  const child = spawn(process.execPath, ['dist/src/cli/main.js', 'emulator', '--json', ...anyPorts], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Promise((resolve) => {
    child.stdout.once('data', () => {
      resolve(performance.now() - startedAtMs);
      child.kill();
    });
  });
}

describe('pubsub-toolkit emulator', () => {
  test('is ready within 1.5 s of process start', async () => {
    const tries = [await readyAfterMs(), await readyAfterMs(), await readyAfterMs()];
    expect(Math.min(...tries)).toBeLessThan(1_500);
  });

  test('the Google clients publish, pull, transact and enqueue against it', async () => {
    const [line = ''] = await startCommand(1, '--json', ...anyPorts);
    const addresses = JSON.parse(line);
    expect(Object.keys(addresses)).toEqual(['pubsub', 'firestore', 'tasks']);

    const pubsub = new PubSub({ projectId: 'ptk-outside', apiEndpoint: addresses.pubsub });
    await pubsub.createTopic('t-outside');
    const inbox = await listenTo(pubsub, 't-outside');
    await pubsub.topic('t-outside').publishMessage({ data: Buffer.from('hello') });
    expect((await inbox.count(1))[0]?.data.toString()).toBe('hello');
    await inbox.close();
    await pubsub.close();

    const db = firestoreClient(addresses.firestore, 'ptk-outside');
    const ref = db.doc('counters/one');
    const add = () => db.runTransaction(async (tx) => void tx.set(ref, { n: ((await tx.get(ref)).get('n') ?? 0) + 1 }));
    await add();
    await add();
    expect((await ref.get()).get('n')).toBe(2);
    await db.terminate();

    const tasks = cloudTasksClient('ptk-outside', addresses.tasks);
    const parent = 'projects/ptk-outside/locations/l';
    await tasks.createQueue({ parent, queue: { name: `${parent}/queues/q` } });
    const [task] = await tasks.createTask({
      parent: `${parent}/queues/q`,
      task: {
        scheduleTime: { seconds: 4_000_000 + Math.floor(performance.timeOrigin / 1_000) - 3_990_000 },
        httpRequest: { url: 'http://127.0.0.1:1/' },
      },
    });
    expect(task.name).toContain(`${parent}/queues/q/tasks/`);
    await tasks.close();
  });

  test('prints the export lines, and ends on SIGTERM', async () => {
    const lines = await startCommand(4, ...anyPorts);
    expect(lines.map((line) => line.replace(/\d+$/, 'PORT'))).toEqual([
      'export PUBSUB_EMULATOR_HOST=127.0.0.1:PORT',
      'export FIRESTORE_EMULATOR_HOST=127.0.0.1:PORT',
      'export CLOUD_TASKS_EMULATOR_HOST=127.0.0.1:PORT',
      'export METADATA_SERVER_DETECTION=none',
    ]);
    const ended = new Promise((resolve) => command?.once('exit', resolve));
    if (command?.pid) process.kill(-command.pid, 'SIGTERM');
    await ended;
  });
});

describe('npm run build', () => {
  const digestsOf = (dist: string) =>
    ['functions.zip', 'appengine.zip'].map((file) =>
      createHash('sha256')
        .update(readFileSync(join(dist, 'deploy', file)))
        .digest('hex'),
    );

  test('makes the same bytes of the same source', () => {
    const again = mkdtempSync(join(tmpdir(), 'ptk-build-'));
    onTestFinished(() => rmSync(again, { recursive: true }));
    execFileSync(process.execPath, [`${root}scripts/build.ts`, again], { env: { ...process.env, TZ: 'Asia/Tokyo' } });
    expect(digestsOf(again)).toEqual(digestsOf(`${root}dist`));
  });
});
