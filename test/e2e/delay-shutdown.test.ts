import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { PubSub } from '@google-cloud/pubsub';
import type { CloudTasksClient } from '@google-cloud/tasks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort, untilAnswers } from '../../src/cli/demo/processes.ts';
import { type Emulator, startEmulator } from '../../src/emulator/server.ts';
import { cloudTasksClient } from '../../src/shared/adapters/cloud-tasks.ts';
import { type Deployed, startFunction } from '../support/deployables.ts';
import { type Inbox, listenTo } from '../support/received.ts';

const projectId = 'ptk-delay-shutdown';
const queue = `projects/${projectId}/locations/local/queues/q`;
const atOnce = 8;
const cwd = fileURLToPath(new URL('../../dist/deploy/appengine', import.meta.url));
let emulator: Emulator;
let pubsub: PubSub;
let delay: Deployed;
let appEngine: ChildProcess;
let start: () => Promise<ChildProcess>;
let tasks: CloudTasksClient;
let final: Inbox;

beforeAll(async () => {
  const PORT = String(await freePort());
  emulator = await startEmulator({ appEngineUrl: `http://127.0.0.1:${PORT}` });
  const env = { ...emulator.env, GOOGLE_CLOUD_PROJECT: projectId, FINAL_TOPIC: 'final', TASK_QUEUES: queue, DELAY_HOLD_MS: '0' };
  start = async () => {
    const started = spawn(process.execPath, ['app.mjs'], { cwd, env: { ...env, PORT }, stdio: 'ignore' });
    await untilAnswers(`http://127.0.0.1:${PORT}/healthz`);
    return started;
  };
  [delay, appEngine] = await Promise.all([startFunction('delay', env), start()]);
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  await Promise.all([pubsub.createTopic('source'), pubsub.createTopic('final')]);
  final = await listenTo(pubsub, 'final');
  await pubsub.topic('source').createSubscription('source', { pushConfig: { pushEndpoint: delay.url } });
  tasks = cloudTasksClient(projectId, emulator.tasks.address);
  const rateLimits = { maxConcurrentDispatches: atOnce };
  const retryConfig = { minBackoff: { nanos: 100_000_000 }, maxBackoff: { nanos: 300_000_000 } };
  await tasks.createQueue({ parent: queue.slice(0, queue.indexOf('/queues/')), queue: { name: queue, rateLimits, retryConfig } });
});

afterAll(async () => {
  appEngine.kill('SIGKILL');
  await Promise.all([delay.kill(), final.close(), tasks.close()]);
  await pubsub.close();
  await emulator.close();
});

test('SIGTERM in the middle of releases: those in hand end, the others come to the next instance, and each message comes once', async () => {
  const keys = Array.from({ length: 20 }, (_, index) => `k${String(index).padStart(2, '0')}`);
  const removeFault = emulator.faults.add({ kind: 'slow-call', rpc: 'Publisher.Publish', resource: '/topics/final', delayMs: 1_000 });
  const attributesOf = (key: string) => ({ 'ptk-key': key, 'ptk-delay-ms': '1' });
  await tasks.pauseQueue({ name: queue });
  await Promise.all(keys.map((key) => pubsub.topic('source').publishMessage({ data: Buffer.from(key), attributes: attributesOf(key) })));
  await expect.poll(() => emulator.tasks.pending(), { timeout: 10_000 }).toHaveLength(keys.length);
  await tasks.resumeQueue({ name: queue });
  await expect.poll(() => emulator.faults.counts()['slow-call'], { timeout: 10_000, interval: 10 }).toBe(atOnce);
  expect([emulator.tasks.dispatching(), final.messages.length]).toEqual([atOnce, 0]);
  const terminatedAtMs = performance.now();
  appEngine.kill('SIGTERM');
  expect(await once(appEngine, 'exit')).toEqual([0, null]);
  expect(performance.now() - terminatedAtMs).toBeLessThan(3_000);
  await final.count(atOnce);
  await expect.poll(() => emulator.tasks.pending()).toHaveLength(keys.length - atOnce);
  removeFault();
  appEngine = await start();
  await final.count(keys.length);
  await expect.poll(() => emulator.tasks.pending(), { timeout: 5_000 }).toEqual([]);
  await expect.poll(() => emulator.pubsub.backlog()).toBe(0);
  expect(final.messages.map(({ attributes }) => attributes['ptk-key']).sort()).toEqual(keys);
  expect(final.messages.every(({ data, attributes }) => data.toString() === attributes['ptk-key'])).toBe(true);
});
