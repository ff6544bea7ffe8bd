import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { firestoreStreamStore } from '../../src/shared/adapters/firestore-streams.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createSequencer } from '../../src/shared/outbox/sequencer.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { firestoreClient } from '../support/targets.ts';

const projectId = 'ptk-relay-command';
const root = fileURLToPath(new URL('../../', import.meta.url));
let emulator: Backend;
let pubsub: PubSub;
let db: Firestore;
const received: string[] = [];

beforeAll(async () => {
  emulator = await startBackend();
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  db = firestoreClient(emulator.firestore.address, projectId);
  await pubsub.createTopic('orders');
  const [subscription] = await pubsub.topic('orders').createSubscription('orders');
  subscription.on('message', (message) => {
    received.push(`${message.attributes['ptk-seq']} ${message.data}`);
    message.ack();
  });
});

afterAll(async () => {
  await Promise.all([pubsub.close(), db.terminate()]);
  await emulator.close();
});

/** Numbered, and left to a relay. */
async function leave(stream: string, topic: string, ...names: string[]): Promise<void> {
  const streams = firestoreStreamStore(db, system.clock, 'shop-');
  const publisher = { publish: () => Promise.reject(new Error('unused')) };
  const { publish } = createSequencer({ streams, publisher, system, log: silentLog, topicOrder: 'strict' });
  await Promise.all(names.map((name) => publish({ stream, topic, key: `${stream}/${name}`, data: Buffer.from(name) })));
}

/** The command as a process of its own, and what it has printed. */
function start(
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): { child: ChildProcess; lines: string[]; errors: string[] } {
  const env = { PATH: process.env.PATH, ...emulator.env, GOOGLE_CLOUD_PROJECT: projectId, COLLECTION_PREFIX: 'shop-', ...more };
  const child = spawn(process.execPath, ['src/cli/main.ts', 'relay', ...args], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [lines, errors]: [string[], string[]] = [[], []];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  return { child, lines, errors };
}

const exitOf = async (child: ChildProcess): Promise<unknown> => child.exitCode ?? (await once(child, 'exit'))[0];

describe('pubsub-toolkit relay', () => {
  test('publishes what is there and what comes, and on SIGTERM gives its streams free and ends with 0', async () => {
    await leave('s1', 'orders', 'a', 'b');
    const { child, lines, errors } = start(['--json'], { OUTBOX_RELAY_POLL_MS: '600000' });
    await vi.waitFor(() => expect(received.toSorted()).toEqual(['1 a', '2 b']), 20_000);
    await leave('s1', 'orders', 'c');
    await vi.waitFor(() => expect(received).toContain('3 c'), 10_000);
    await vi.waitFor(() => expect(lines).toHaveLength(3), 10_000);
    child.kill('SIGTERM');
    expect([await exitOf(child), errors]).toEqual([0, []]);
    expect(lines.map((line) => JSON.parse(line).relay).filter((relay) => relay !== 'running')).toEqual([
      { published: 2, failed: 0, dead: 0, streams: 1 },
      { published: 1, failed: 0, dead: 0, streams: 1 },
    ]);
    expect((await db.collection('shop-ptk-relays').get()).docs.map((lease) => lease.get('runId'))).toEqual(['']);
  });

  test('--once makes one pass, and fails where something could not be published', async () => {
    await leave('s2', 'orders', 'd');
    const good = start(['--once']);
    expect(await exitOf(good.child)).toBe(0);
    expect(good.lines).toEqual(['published 1, failed 0, dead 0, of 1 streams']);
    await leave('s3', 'no-such-topic', 'e');
    const bad = start(['--once', '--json']);
    expect(await exitOf(bad.child)).toBe(1);
    expect(bad.lines).toEqual(['{"relay":{"published":0,"failed":1,"dead":0,"streams":1}}']);
    expect(bad.errors.join('\n')).toContain('entry not published');
  });

  test.each([
    [[], { GOOGLE_CLOUD_PROJECT: '' }, 'GOOGLE_CLOUD_PROJECT is not set; relay needs it'],
    [[], { OUTBOX_RELAY_POLL_MS: '5' }, 'OUTBOX_RELAY_POLL_MS is "5"; it must be a whole number from 100 to 600000'],
    [['--twice'], {}, "Unknown option '--twice'"],
  ])('%j with %j does not start: %s', async (args, env, why) => {
    const { child, errors } = start(args, env);
    expect(await exitOf(child)).toBe(1);
    expect(errors.join('\n')).toContain(why);
  });
});
