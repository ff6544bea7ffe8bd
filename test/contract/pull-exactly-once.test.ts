import { PubSub, type Message as PubsubMessage } from '@google-cloud/pubsub';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/server.ts';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import type { Handler } from '../../src/shared/ports.ts';
import { startPull } from '../../src/shared/transports/pull.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';
import { type Gate, gate } from '../support/manual-system.ts';

/** Google's emulator is not asked: it knows no exactly-once delivery. */
let emulator: Emulator;
let pubsub: PubSub;
const unhandled: unknown[] = [];
const keepUnhandled = (reason: unknown) => void unhandled.push(reason);

beforeAll(async () => {
  process.on('unhandledRejection', keepUnhandled);
  emulator = await startEmulator();
  pubsub = new PubSub({ projectId: 'ptk-exactly', apiEndpoint: emulator.pubsub.address, emulatorMode: true });
});

beforeEach(() => emulator.faults.replace([]));

afterAll(async () => {
  await pubsub.close();
  await emulator.close();
  process.off('unhandledRejection', keepUnhandled);
});

/** Later than what the client sends for the delivery before: one request for both would fail for both. */
const retryPolicy = { minimumBackoff: { seconds: 1 }, maximumBackoff: { seconds: 1 } };

/** A pull under dedup from an exactly-once subscription, and what the client received for it. */
async function pulled(name: string, handler: Handler) {
  const [topic] = await pubsub.createTopic(name);
  const [subscription] = await topic.createSubscription(name, { enableExactlyOnceDelivery: true, retryPolicy });
  const deliveries: PubsubMessage[] = [];
  const counted: string[] = [];
  const dedup = createDedup({ consumer: name, store: memoryRecordStore<DedupRecord>(system.clock), system, log: silentLog });
  const pull = startPull({
    subscription,
    handle: dedup(handler),
    deadLetters: keptDeadLetters(),
    system,
    log: silentLog,
    meter: { record: (metric, { why = '' }) => void counted.push(`${metric} ${why}`.trim()) },
  });
  subscription.on('message', (delivery) => deliveries.push(delivery));
  await topic.publishMessage({ data: Buffer.from('x') });
  return { pull, subscription, deliveries, counted };
}

describe('with exactly-once delivery and the real client', () => {
  test('a message whose ack is refused comes again, and is acked without a second run', async () => {
    let runs = 0;
    emulator.faults.add({ kind: 'refuse-ack', times: 1 });
    const { pull, deliveries, counted } = await pulled('ack', async () => {
      runs += 1;
    });
    await expect.poll(() => deliveries.length, { timeout: 10_000 }).toBe(2);
    await expect.poll(() => emulator.pubsub.backlog()).toBe(0);
    await pull.close();
    expect([runs, counted]).toEqual([1, ['ptk.pull.ack_failed']]);
    expect(unhandled).toEqual([]);
  });

  test('a handler is told when Pub/Sub refuses to extend its delivery, which is not acked then', async () => {
    const started: Gate = gate();
    const hold = gate();
    let runs = 0;
    let signal: AbortSignal | undefined;
    const { pull, subscription, deliveries, counted } = await pulled('extension', async (_, context) => {
      runs += 1;
      signal = context.signal;
      started.open();
      await hold.opened;
    });
    await started.opened;
    const [first] = deliveries;
    // From elsewhere, so that the client does not know that its ack id is stale.
    const reqOpts = { subscription: subscription.name, ackIds: [first?.ackId], ackDeadlineSeconds: 0 };
    await new Promise((resolve) => subscription.request({ client: 'SubscriberClient', method: 'modifyAckDeadline', reqOpts }, resolve));
    // What the client itself calls, up to 54 s later.
    await expect(first?.modAckWithResponse(60)).rejects.toThrow('INVALID');
    expect(signal?.reason).toMatchObject({ message: expect.stringContaining('Pub/Sub refused to extend the delivery: INVALID') });
    await expect.poll(() => deliveries.length, { timeout: 10_000 }).toBe(2);
    hold.open();
    await expect.poll(() => emulator.pubsub.backlog()).toBe(0);
    await pull.close();
    expect([runs, counted]).toEqual([1, ['ptk.pull.extension_ended refused']]);
    expect(unhandled).toEqual([]);
  });
});
