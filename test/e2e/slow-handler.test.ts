import { createServer, type Server, type ServerResponse } from 'node:http';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Emulator, type ManualTime, manualTime, startEmulator } from '../../src/emulator/server.ts';
import { type Deployed, startFunction } from '../support/deployables.ts';

const projectId = 'ptk-slow';
/** The least that a subscription takes, and what Eventarc's has. */
const ackDeadlineMs = 10_000;

let emulator: Emulator<ManualTime>;
let pubsub: PubSub;
let sink: Server;
let plain: Deployed;
let dedup: Deployed;
/** Calls that wait for their answer, in the order they came. */
let held: ServerResponse[] = [];
let onCall = () => {};
const calledTimes = (times: number) =>
  new Promise<void>((resolve) => {
    onCall = () => held.length >= times && resolve();
    onCall();
  });

beforeAll(async () => {
  sink = createServer((request, response) => {
    request.resume().once('end', () => {
      held.push(response);
      onCall();
    });
  });
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
  const address = sink.address();
  emulator = await startEmulator({ time: manualTime(Date.now()) });
  const SINK = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
  const env = { ...emulator.env, GOOGLE_CLOUD_PROJECT: projectId, CONSUMER: 'c', SINK };
  [plain, dedup] = await Promise.all([startFunction('dedup', { ...env, DEDUP_MODE: 'off' }), startFunction('dedup', env)]);
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
});

afterEach(() => {
  for (const response of held) response.end();
  held = [];
});

afterAll(async () => {
  await Promise.all([plain.kill(), dedup.kill(), pubsub.close()]);
  sink.closeAllConnections();
  sink.close();
  await emulator.close();
});

async function publishTo(name: string, { url }: Deployed): Promise<void> {
  await pubsub.createTopic(name);
  await pubsub.topic(name).createSubscription(name, { pushConfig: { pushEndpoint: url }, ackDeadlineSeconds: ackDeadlineMs / 1_000 });
  await pubsub.topic(name).publishMessage({ data: Buffer.from('x') });
  await emulator.time.settled();
}

describe('a handler that takes longer than the ack deadline', () => {
  test('G94: it is called again while it runs, at the deadline and not before', async () => {
    await publishTo('plain', plain);
    await calledTimes(1);
    await emulator.time.advance(ackDeadlineMs - 1);
    expect(held).toHaveLength(1);
    await emulator.time.advance(1);
    await calledTimes(2);
    // Nobody has answered yet: both run.
    expect(held).toHaveLength(2);
  });

  test('G94: under dedup the second delivery does not run beside the first, and both end with it', async () => {
    await publishTo('deduped', dedup);
    await calledTimes(1);
    await emulator.time.advance(ackDeadlineMs);
    await emulator.time.advance(ackDeadlineMs);
    expect(held).toHaveLength(1);
    held[0]?.end();
    await expect.poll(() => emulator.pubsub.backlog()).toBe(0);
    expect(held).toHaveLength(1);
  });
});
