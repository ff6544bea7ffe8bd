import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { afterEach, describe, expect, test } from 'vitest';
import { useEmulator } from '../../src/testing/use-emulator.ts';
import { tasksClient } from '../support/tasks-stack.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

/** The hooks of a runner that this test plays. */
function playedRunner() {
  const hooks: Record<string, () => Promise<void>> = {};
  const taking = (name: string) => (hook: () => Promise<void>) => {
    hooks[name] = hook;
  };
  const emulator = useEmulator({ beforeAll: taking('beforeAll'), afterEach: taking('afterEach'), afterAll: taking('afterAll') });
  return { emulator, hook: (name: 'beforeAll' | 'afterEach' | 'afterAll') => hooks[name]?.() };
}

describe('useEmulator', () => {
  const runners: ReturnType<typeof playedRunner>[] = [];
  const started = async () => {
    const runner = playedRunner();
    runners.push(runner);
    await runner.hook('beforeAll');
    return runner;
  };
  afterEach(async () => {
    for (const { hook } of runners.splice(0)) await hook('afterAll');
  });

  test('sets the variables for the clients of the file, and puts back those of before', async () => {
    const hostBefore = process.env.PUBSUB_EMULATOR_HOST;
    const { emulator, hook } = await started();
    expect(process.env.PUBSUB_EMULATOR_HOST).toBe(emulator().pubsub.address);
    await hook('afterAll');
    expect(process.env.PUBSUB_EMULATOR_HOST).toBe(hostBefore);
    expect(emulator).toThrow('the emulator runs from the first test of the file on');
  });

  test('empties the emulator after each test, which passes when its clients are closed', async () => {
    const { hook } = await started();
    const pubsub = new PubSub({ projectId: 'ptk-helper' });
    const [topic] = await pubsub.createTopic('orders');
    const [subscription] = await topic.createSubscription('orders');
    const received = new Promise((resolve) => subscription.on('message', (message) => resolve(message.ack())));
    await topic.publishMessage({ data: Buffer.from('x') });
    await received;
    await subscription.close();
    await hook('afterEach');
    expect(await topic.exists()).toEqual([false]);
    await pubsub.close();
  });

  test('fails a test that leaves a subscriber behind', async () => {
    const { hook } = await started();
    const pubsub = new PubSub({ projectId: 'ptk-helper' });
    const [topic] = await pubsub.createTopic('orders');
    const [subscription] = await topic.createSubscription('orders');
    const ended = new Promise((resolve) => subscription.on('error', resolve));
    const received = new Promise((resolve) => subscription.on('message', (message) => resolve(message.ack())));
    await topic.publishMessage({ data: Buffer.from('x') });
    await received;
    await expect(hook('afterEach')).rejects.toThrow('the test left behind: a subscriber of projects/ptk-helper/subscriptions/orders');
    await ended;
    await subscription.close();
    await pubsub.close();
  });

  test('fails a test that leaves a task or a listener behind', async () => {
    const { emulator, hook } = await started();
    const tasks = tasksClient(emulator().tasks.address);
    const parent = 'projects/ptk-test/locations/l';
    const name = `${parent}/queues/q/tasks/late`;
    await tasks.createQueue({ parent, queue: { name: `${parent}/queues/q` } });
    const inAnHour = { seconds: Math.floor(emulator().time.nowMs() / 1_000) + 3_600 };
    await tasks.createTask({
      parent: `${parent}/queues/q`,
      task: { name, scheduleTime: inAnHour, httpRequest: { url: 'http://127.0.0.1:1/' } },
    });
    const db = new Firestore({ projectId: 'ptk-helper' });
    const first = Promise.withResolvers<void>();
    const stop = db.doc('orders/17').onSnapshot(
      () => first.resolve(),
      () => {},
    );
    await first.promise;
    await expect(hook('afterEach')).rejects.toThrow(/the test left behind: a listener to .*orders\/17.*, the task .*\/late/);
    stop();
    await db.terminate();
    await tasks.close();
  });
});

/** A file of `node:test` as a user writes it, below the checkout so that the package finds itself. */
async function nodeTest(body: string): Promise<string> {
  const folder = mkdtempSync(join(root, 'dist/node-test-'));
  const file = join(folder, 'left.test.mjs');
  writeFileSync(file, body);
  try {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { stdout } = await run(process.execPath, ['--test', '--test-force-exit', '--test-reporter=tap', file], { cwd: root, env }).catch(
      (error) => error,
    );
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('with node:test', () => {
  test('the example of the README passes', async () => {
    const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', 'examples/emulator.test.ts'], { cwd: root });
    expect(stdout).toContain('ok 1 - a claim survives a lost answer');
  });

  test('a test that leaves a subscriber behind fails, and the next one passes', async () => {
    const printed = await nodeTest(`
      import { after, afterEach, before, test } from 'node:test';
      import { PubSub } from '@google-cloud/pubsub';
      import { useEmulator } from 'pubsub-toolkit/testing';
      useEmulator({ beforeAll: before, afterEach, afterAll: after });
      test('forgets to close', async () => {
        const [topic] = await new PubSub({ projectId: 'p' }).createTopic('orders');
        const [subscription] = await topic.createSubscription('orders');
        const received = new Promise((resolve) => subscription.on('message', resolve));
        subscription.on('error', () => {});
        await topic.publishMessage({ data: Buffer.from('x') });
        await received;
      });
      test('closes', async () => {
        await new PubSub({ projectId: 'p' }).createTopic('orders');
      });
    `);
    expect(printed).toContain('not ok 1 - forgets to close');
    expect(printed).toContain('the test left behind: a subscriber of projects/p/subscriptions/orders');
    expect(printed).toContain('ok 2 - closes');
  });
});
