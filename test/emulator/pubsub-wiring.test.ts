import { PubSub } from '@google-cloud/pubsub';
import { afterAll, describe, expect } from 'vitest';
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
  statement(embeddedTarget, 5, 'the first calls are answered within 300 ms of the start, and a stop leaves nothing open', async () => {
    const startAndStop = async () => {
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
    const open = () => process.getActiveResourcesInfo().filter((kind) => kind.startsWith('TCP'));
    const before = open();
    const took = [await startAndStop(), await startAndStop(), await startAndStop()];
    expect(Math.min(...took)).toBeLessThan(300);
    await expect.poll(open).toEqual(before);
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
      'a publish of 11 MB is refused at once, for good',
      withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('large');
        const messages = [{ data: Buffer.alloc(11_000_000) }];
        const startedAtMs = performance.now();
        expect(await codeOf(raw.call('Publish', { topic, messages }))).toBe('INVALID_ARGUMENT');
        expect(performance.now() - startedAtMs).toBeLessThan(1_000);
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
