import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { runRedrive } from '../../src/cli/redrive.ts';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { deadLetterTopic } from '../../src/shared/transports/dead-letters.ts';
import { startPull } from '../../src/shared/transports/pull.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { firestoreClient } from '../support/targets.ts';

const projectId = 'ptk-redrive';
const root = fileURLToPath(new URL('../../', import.meta.url));

let emulator: Backend;
let pubsub: PubSub;
let db: Firestore;

beforeAll(async () => {
  emulator = await startBackend();
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  db = firestoreClient(emulator.firestore.address, projectId);
  for (const [name, value] of Object.entries(emulator.env)) vi.stubEnv(name, value);
});

afterAll(async () => {
  await Promise.all([pubsub.close(), db.terminate()]);
  await emulator.close();
  vi.unstubAllEnvs();
});

const environment = { GOOGLE_CLOUD_PROJECT: projectId };

/** The command as a process of its own: its exit code, and what it prints. */
async function command(...args: string[]): Promise<readonly [number, string, string]> {
  const env = { PATH: process.env.PATH, ...emulator.env, ...environment };
  const run = promisify(execFile)(process.execPath, ['src/cli/main.ts', 'redrive', ...args], { cwd: root, env });
  return run.then(
    ({ stdout, stderr }) => [0, stdout, stderr],
    (error: { code: number; stdout: string; stderr: string }) => [error.code, error.stdout, error.stderr],
  );
}

/** The same in this process; resolves to what it prints. */
async function asked(...args: string[]): Promise<string[]> {
  const lines: string[] = [];
  await runRedrive(args, environment, (line: string) => void lines.push(line));
  return lines;
}

/** A consumer of a topic, what it ran and how its deliveries ended, and a conflict in its dead letters. */
async function withConflict(topic: string) {
  const ran: string[] = [];
  const verdicts: string[] = [];
  const dead = `${topic}-dead`;
  await Promise.all([pubsub.createTopic(topic), pubsub.createTopic(dead)]);
  const [subscription] = await pubsub.topic(topic).createSubscription(`${topic}-in`);
  await pubsub.topic(dead).createSubscription(dead);
  const store = firestoreRecordStore<DedupRecord>(db, system.clock, 'ptk-dedup');
  const handle = createDedup({ consumer: topic, store, system, log: silentLog })(
    async ({ data }) => void ran.push(Buffer.from(data).toString()),
  );
  const pull = startPull({
    subscription,
    system,
    log: silentLog,
    deadLetters: deadLetterTopic(pubsubPublisher(pubsub), dead),
    handle: async (message, context) => {
      const verdict = await handle(message, context);
      verdicts.push(verdict.reason);
      return verdict;
    },
  });
  onTestFinished(() => pull.close());
  /** Publishes under one key, and waits until it is handled. */
  const publish = async (data: string) => {
    const before = verdicts.length;
    await pubsub.topic(topic).publishMessage({ data: Buffer.from(data), attributes: { 'ptk-key': 'order-17' } });
    await expect.poll(() => verdicts.length).toBe(before + 1);
    return verdicts.at(-1);
  };
  expect([await publish('old payload'), await publish('new payload')]).toEqual(['processed', 'conflict']);
  return { ran, verdicts, dead, publish };
}

test('redrive --as accept-new runs the conflicting message once, and a copy of the old one is a duplicate', async () => {
  const { ran, verdicts, dead, publish } = await withConflict('accepted');
  const [, row, counts] = await asked('--subscription', dead, '--as', 'accept-new', '--dry-run');
  expect(row).toMatch(/^\d+ +accepted {18}order-17 .* would be accepted$/);
  expect(counts).toBe('{"redrive":{"accepted":0,"kept":0,"left":1}}');

  const [code, out, errors] = await command('--subscription', `projects/${projectId}/subscriptions/${dead}`, '--as', 'accept-new');
  expect([code, errors]).toEqual([0, '']);
  expect(out).toMatch(/ accepted\n\{"redrive":\{"accepted":1,"kept":0,"left":0\}\}\n$/);
  expect(out).not.toContain('payload');
  await expect.poll(() => verdicts).toEqual(['processed', 'conflict', 'processed']);
  expect([await publish('old payload'), await publish('new payload')]).toEqual(['duplicate', 'duplicate']);
  expect(ran).toEqual(['old payload', 'new payload']);
  await emulator.untilEmpty();
});

test('redrive --as keep-old takes the letter away, and nothing runs', async () => {
  const { ran, dead, publish } = await withConflict('kept');
  expect((await asked('--subscription', dead, '--as', 'keep-old')).at(-1)).toBe('{"redrive":{"accepted":0,"kept":1,"left":0}}');
  await emulator.untilEmpty();
  expect([await publish('old payload'), await publish('new payload')]).toEqual(['duplicate', 'conflict']);
  expect(ran).toEqual(['old payload']);
});

test('redrive gives back at once what it leaves', async () => {
  const { dead } = await withConflict('left');
  expect(await asked('--subscription', dead, '--as', 'keep-old', '--message-id', 'none')).toEqual([
    '{"redrive":{"accepted":0,"kept":0,"left":1}}',
  ]);
  const subscription = pubsub.subscription(dead);
  onTestFinished(() => subscription.close());
  const startedAtMs = performance.now();
  const [letter] = await once(
    subscription.on('message', (message) => message.ack()),
    'message',
  );
  expect(letter.attributes['ptk-dead-reason']).toBe('conflict');
  expect(performance.now() - startedAtMs).toBeLessThan(5_000);
});

test.each<[string[], RegExp]>([
  [['--as', 'keep-old'], /^--subscription is missing; it names the subscription of the dead letters$/],
  [['--subscription', 'x'], /^--as is missing; it must be accept-new or keep-old$/],
  [['--subscription', 'x', '--as', 'new'], /^--as is "new"; it must be accept-new or keep-old$/],
  [['--subscription', 'x', '--as', 'keep-old', '--limit', '0'], /^--limit is "0"; it must be a whole number from 1 to 999999999$/],
  [['--subscription', 'x', '--as', 'keep-old', '--topic', 'a b'], /^--topic is "a b", which is no name of a topic$/],
  [['--subscription', 'x', '--as', 'keep-old', '--store', 'sql'], /^STORE is "sql"; it must be one of firestore, redis, two-tier$/],
  [['--subscription', 'x', '--as', 'keep-old', '--store', 'redis'], /^REDIS_URL is not set; STORE=redis needs it$/],
  [['--subscription', 'x', '--as', 'keep-old', '--all'], /^Unknown option '--all'/],
])('redrive %j is refused with one sentence', async (args, sentence) => {
  await expect(asked(...args)).rejects.toThrow(sentence);
});

test('redrive of a subscription that is not there says so and ends with 1', async () => {
  const [code, out, errors] = await command('--subscription', 'no-such', '--as', 'keep-old');
  expect([code, out]).toEqual([1, '']);
  expect(errors).toMatch(
    /^pubsub-toolkit redrive: no dead letter can be pulled from projects\/ptk-redrive\/subscriptions\/no-such: 5 NOT_FOUND: .*\n$/,
  );
});
