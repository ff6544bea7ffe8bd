import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firestoreFifoStore } from '../../src/shared/adapters/firestore-fifo.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createFifo } from '../../src/shared/fifo/fifo.ts';
import { keptDeadLetters, silentLog, testMessage } from '../../src/testing/doubles.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { context } from '../support/fifo-processes.ts';
import { listenTo } from '../support/received.ts';
import { firestoreClient } from '../support/targets.ts';

const projectId = 'ptk-fifo-command';
const root = fileURLToPath(new URL('../../', import.meta.url));
let emulator: Backend;
let db: Firestore;
let pubsub: PubSub;

beforeAll(async () => {
  emulator = await startBackend();
  db = firestoreClient(emulator.firestore.address, projectId);
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
});

afterAll(async () => {
  await Promise.all([db.terminate(), pubsub.close()]);
  await emulator.close();
});

/** The command as a process of its own: its exit code, and what it prints. */
async function command(...args: string[]): Promise<readonly [number, string]> {
  const env = {
    PATH: process.env.PATH,
    METADATA_SERVER_DETECTION: 'none',
    ...emulator.env,
    GOOGLE_CLOUD_PROJECT: projectId,
    CONSUMER: 'c',
  };
  const run = promisify(execFile)(process.execPath, ['src/cli/main.ts', 'fifo', ...args], { cwd: root, env });
  return run.then(
    ({ stdout }) => [0, stdout.trim()],
    (error: { code: number; stdout: string; stderr: string }) => [error.code, (error.stdout + error.stderr).trim()],
  );
}

test('an operator finds a blocked stream, skips its poison, and what is behind it runs with the next sweep', async () => {
  await pubsub.createTopic('dead');
  const letters = await listenTo(pubsub, 'dead');
  const runs: string[] = [];
  const fifo = createFifo({
    consumer: 'c',
    store: firestoreFifoStore(db, system.clock),
    system,
    log: silentLog,
    deadLetters: keptDeadLetters(),
    options: { maxAttempts: 1 },
  })(async ({ attributes }) => {
    runs.push(attributes['ptk-seq'] ?? '');
    if (attributes['ptk-seq'] === '1') throw new Error('poison');
  });
  const numbered = (seq: number) => ({ 'ptk-stream': 'orders/17', 'ptk-seq': `${seq}`, 'ptk-epoch': '100', 'ptk-key': `k${seq}` });
  for (const seq of [1, 2, 3]) await fifo(testMessage({ messageId: `m${seq}`, attributes: numbered(seq) }), context());

  const [found, listed] = await command('blocked', '--json');
  expect(found).toBe(0);
  expect(JSON.parse(listed)).toMatchObject({
    fifo: { streams: [{ stream: 'orders/17', state: 'blocked', last: 0, parked: 3, blocked: { seq: 1, reason: 'attempts' } }] },
  });
  const [, status] = await command('status', 'orders/17');
  expect(status).toMatch(
    /^orders\/17: blocked, last 0 of epoch 100, stopped at 1 \(attempts\) since 20.*, 3 parked, the lowest 1 of epoch 100$/,
  );

  expect(await command('skip', 'orders/17', '--number', '2', '--dead-letter-topic', 'dead')).toEqual([
    1,
    'refused: number 2 of stream orders/17 is not the next one, which is 1',
  ]);
  expect(await command('skip', 'orders/17', '--number', '1')).toEqual([1, expect.stringContaining('DEAD_LETTER_TOPIC')]);
  const [skipped, after] = await command('skip', 'orders/17', '--number', '1', '--dead-letter-topic', 'dead', '--json');
  expect([skipped, JSON.parse(after)]).toMatchObject([0, { fifo: { streams: [{ state: 'idle', last: 1, skipped: 1, parked: 2 }] } }]);
  const [letter] = await letters.count(1);
  expect(letter?.attributes).toMatchObject({ 'ptk-dead-reason': 'skipped', 'ptk-seq': '1' });
  await letters.close();

  expect(await fifo.sweep()).toMatchObject({ run: 2 });
  expect(runs).toEqual(['1', '2', '3']);
  expect(await command('blocked')).toEqual([0, 'no stream stands still']);
});

test.each([
  [['status'], 'status needs a stream'],
  [['halt', 's'], '"halt" is no command; it must be one of blocked, status, skip, resume, reset, replay'],
  [['skip', 's'], 'skip needs --number'],
  [['skip', 's', '--number', '007'], '--number is "007"; it must be a whole number from 1'],
  [['replay', 's', '--from', '1e3'], '--from is "1e3"; it must be a whole number from 1'],
  [['reset', 's', '--to', '-1'], "'--to' argument is ambiguous"],
  [['resume', 's', 't'], '"t" is one word too many; a command takes one stream'],
  [['resume', 's'], 'refused: stream s has no cursor of consumer c'],
])('%j ends with exit code 1 and one sentence', async (args, sentence) => {
  const [code, printed] = await command(...args);
  expect([code, printed]).toEqual([1, expect.stringContaining(sentence)]);
});
