import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, describe, expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/server.ts';
import { firestoreClient, statement } from '../support/targets.ts';
import { definitions } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, pubsubTargets, withPubsub, withRawPubsub } from './pubsub-targets.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);
const { target: embeddedTarget } = embedded;

/** What a client's mistake may be answered with: nothing that a client tries again. */
const permanent = ['OK', 'INVALID_ARGUMENT', 'NOT_FOUND', 'UNIMPLEMENTED'];

describe('Pub/Sub wiring: a whole emulator', () => {
  statement(embeddedTarget, 5, 'the first calls are answered within 300 ms of the start', async () => {
    const start = async () => {
      const startedAtMs = performance.now();
      const emulator = await startEmulator();
      const db = firestoreClient(emulator.firestore.address, 'ptk-wiring');
      const target = { name: 'embedded', address: emulator.pubsub.address } as const;
      await Promise.all([
        withRawPubsub(target, async (raw) => void (await raw.createTopic('first')))(),
        db.doc('first/one').set({ made: true }),
      ]);
      const tookMs = performance.now() - startedAtMs;
      await db.terminate();
      await emulator.close();
      return tookMs;
    };
    // A busy machine has its moments; the fastest of ten tells.
    let fastestMs = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 10 && fastestMs >= 300; tries++) fastestMs = Math.min(fastestMs, await start());
    expect(fastestMs).toBeLessThan(300);
  });

  statement(embeddedTarget, 5, 'a stop leaves nothing open: the process ends by itself, open streams and leases or not', async () => {
    const script = `
      import { startEmulator } from '${new URL('../../src/emulator/server.ts', import.meta.url)}';
      import { rawPubsub } from '${new URL('pubsub-raw.ts', import.meta.url)}';
      const emulator = await startEmulator();
      const raw = rawPubsub({ name: 'embedded', address: emulator.pubsub.address }, 'ptk');
      const topic = await raw.createTopic('orders');
      const stream = raw.stream(await raw.createSubscription('worker', topic));
      await raw.publish(topic, ['1']);
      await stream.count(1);
      raw.close();
      await emulator.close();
      console.log('stopped');`;
    const run = promisify(execFile)(process.execPath, ['--conditions=source', '--input-type=module', '--eval', script], {
      timeout: 15_000,
    });
    expect((await run).stdout.trim()).toBe('stopped');
  });

  statement(embeddedTarget, 1, 'a client reaches the server that its environment named when it was built', async () => {
    const [first, second] = await Promise.all([startEmulator(), startEmulator()]);
    const before = process.env.PUBSUB_EMULATOR_HOST;
    process.env.PUBSUB_EMULATOR_HOST = first.env.PUBSUB_EMULATOR_HOST;
    const early = new PubSub({ projectId: 'ptk-wiring' });
    process.env.PUBSUB_EMULATOR_HOST = second.env.PUBSUB_EMULATOR_HOST;
    const late = new PubSub({ projectId: 'ptk-wiring' });
    try {
      await early.createTopic('made-early');
      expect(await late.topic('made-early').exists()).toEqual([false]);
      expect(await early.topic('made-early').exists()).toEqual([true]);
    } finally {
      if (before === undefined) delete process.env.PUBSUB_EMULATOR_HOST;
      else process.env.PUBSUB_EMULATOR_HOST = before;
      await Promise.all([early.close(), late.close()]);
      await Promise.all([first.close(), second.close()]);
    }
  });
});

describe('Pub/Sub wiring: addresses', () => {
  for (const prefix of ['', 'http://', 'https://']) {
    test(`a client that is given ${prefix}HOST:PORT needs no credentials`, async () => {
      const pubsub = new PubSub({
        projectId: `ptk-${prefix.length}`,
        apiEndpoint: `${prefix}${embeddedTarget.address}/`,
        emulatorMode: true,
      });
      await pubsub.createTopic('orders');
      expect(embedded.topics().map(({ name }) => name)).toContain(`projects/ptk-${prefix.length}/topics/orders`);
      await pubsub.close();
    });
  }
});

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub wiring: ${target.name}`, () => {
    statement(
      target,
      3,
      'a publish of 9.5 MB is taken',
      withPubsub(target, async (pubsub) => {
        const [topic] = await pubsub.createTopic('large');
        expect(await topic.publishMessage({ data: Buffer.alloc(9_500_000) })).toMatch(/^\d+$/);
      }),
    );

    statement(
      target,
      3,
      'a publish of 11 MB is refused for good within 100 ms, or within twice what one of 9.5 MB takes on a slow machine',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('large');
        const publishMs = async (bytes: number, expected: string) => {
          const messages = [{ data: Buffer.alloc(bytes) }];
          const startedAtMs = performance.now();
          expect(await codeOf(raw.call('Publish', { topic, messages }))).toBe(expected);
          return performance.now() - startedAtMs;
        };
        const [takenMs, refusedMs]: [number[], number[]] = [[], []];
        const isQuick = () => Math.min(...refusedMs) < Math.max(100, 2 * Math.min(...takenMs));
        // One quick answer shows it; a machine with other work may hold up any of them.
        for (let tries = 0; tries < 20 && !isQuick(); tries++) {
          takenMs.push(await publishMs(9_500_000, 'OK'));
          refusedMs.push(await publishMs(11_000_000, 'INVALID_ARGUMENT'));
        }
        expect(isQuick()).toBe(true);
      }),
      { differs: 'never answers it' },
    );

    statement(
      target,
      4,
      'no method answers an empty request with a code that is tried again',
      withRawPubsub(target, async (raw) => {
        for (const [method, { requestStream }] of Object.entries(definitions)) {
          const code = requestStream ? await raw.stream('', { streamAckDeadlineSeconds: 0 }).ended : await codeOf(raw.call(method, {}));
          expect(permanent, `${method} answers ${code}`).toContain(code);
        }
      }),
      { differs: 'answers UNKNOWN to ListTopics without a project' },
    );
  });
}
