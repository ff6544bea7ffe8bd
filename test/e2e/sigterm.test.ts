import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort, untilAnswers } from '../../src/cli/demo/processes.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { gate } from '../support/manual-system.ts';

const projectId = 'ptk-sigterm';
const framework = join(dirname(createRequire(import.meta.url).resolve('@google-cloud/functions-framework')), 'main.js');
const functions = fileURLToPath(new URL('../../dist/deploy/functions', import.meta.url));

let emulator: Backend;
let pubsub: PubSub;
let sink: Server;
let instance: ChildProcess;
let start: () => Promise<ChildProcess>;
let url: string;
let onCall = async (_data: string) => {};
const effects: string[] = [];

/** What the platform does when it takes an instance away. */
async function terminate(process: ChildProcess): Promise<number | null> {
  const ended = new Promise<number | null>((resolve) => process.once('exit', resolve));
  process.kill('SIGTERM');
  return ended;
}

beforeAll(async () => {
  sink = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const data = Buffer.from(JSON.parse(Buffer.concat(chunks).toString()).message.data, 'base64').toString();
    await onCall(data);
    effects.push(data);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
  const address = sink.address();
  emulator = await startBackend();
  const port = await freePort();
  url = `http://127.0.0.1:${port}/`;
  const env = {
    ...process.env,
    ...emulator.env,
    GOOGLE_CLOUD_PROJECT: projectId,
    FUNCTION_TARGET: 'dedup',
    CONSUMER: 'c',
    SINK: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`,
    DEDUP_LEASE_MS: '1000',
  };
  start = async () => {
    const started = spawn(process.execPath, [framework, '--target=dedup', `--port=${port}`], { cwd: functions, env, stdio: 'ignore' });
    await untilAnswers(url);
    return started;
  };
  instance = await start();
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
});

afterAll(async () => {
  instance.kill('SIGKILL');
  await pubsub.close();
  sink.closeAllConnections();
  sink.close();
  await emulator.close();
});

test('G95: SIGTERM in the middle of two requests: both messages come again to the next instance and take effect once', async () => {
  emulator.checkInspected();
  const underWay: string[] = [];
  const [bothRun, bothDone] = [gate(), gate()];
  onCall = async (data) => {
    underWay.push(data);
    if (underWay.length === 2) bothRun.open();
    // The first instance ends before it hears of an effect, and so there is none.
    if (underWay.length <= 2) await new Promise(() => {});
    if (underWay.length === 4) bothDone.open();
  };
  await pubsub.createTopic('ended');
  const retryPolicy = { minimumBackoff: { nanos: 100_000_000 }, maximumBackoff: { nanos: 300_000_000 } };
  await pubsub.topic('ended').createSubscription('ended', { pushConfig: { pushEndpoint: url }, retryPolicy });
  for (const data of ['a', 'b']) await pubsub.topic('ended').publishMessage({ data: Buffer.from(data) });
  await bothRun.opened;
  expect(await terminate(instance)).toBe(0);
  expect(effects).toEqual([]);
  instance = await start();
  await bothDone.opened;
  await emulator.untilEmpty();
  expect(underWay.slice(2).sort()).toEqual(['a', 'b']);
  expect(effects.sort()).toEqual(['a', 'b']);
});
