import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { startPull } from '../../src/shared/transports/pull.ts';
import { ack } from '../../src/shared/verdict.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { gate } from '../support/manual-system.ts';

let emulator: Backend;
let pubsub: PubSub;

beforeAll(async () => {
  emulator = await startBackend();
  pubsub = new PubSub({ projectId: 'ptk-pull', apiEndpoint: emulator.pubsub.address, emulatorMode: true });
});

afterAll(async () => {
  await pubsub.close();
  await emulator.close();
});

test('with the real client, a message whose handler ends during close is acked and does not come again', async () => {
  const [topic] = await pubsub.createTopic('orders');
  await topic.createSubscription('orders-pull');
  const started = gate();
  const hold = gate();
  const pull = startPull({
    subscription: pubsub.subscription('orders-pull'),
    handle: async () => {
      started.open();
      await hold.opened;
      return ack('processed');
    },
    deadLetters: keptDeadLetters(),
    system,
    log: silentLog,
  });
  await topic.publishMessage({ data: Buffer.from('x') });
  await started.opened;
  const closed = pull.close();
  hold.open();
  await closed;

  const last = gate();
  const received: string[] = [];
  const again = startPull({
    subscription: pubsub.subscription('orders-pull'),
    handle: async ({ data }) => {
      const text = Buffer.from(data).toString();
      received.push(text);
      if (text === 'last') last.open();
      return ack('processed');
    },
    deadLetters: keptDeadLetters(),
    system,
    log: silentLog,
  });
  await topic.publishMessage({ data: Buffer.from('last') });
  await last.opened;
  await again.close();
  expect(received).toEqual(['last']);
});

/** A store whose records a test can look at. */
function visibleStore() {
  const memory = memoryRecordStore<DedupRecord>(system.clock);
  const records = new Map<string, DedupRecord>();
  const store: RecordStore<DedupRecord> = {
    get: memory.get,
    async put(key, record, expected, keepMs) {
      const put = await memory.put(key, record, expected, keepMs);
      if ('version' in put) records.set(key, record);
      return put;
    },
  };
  return { store, states: () => [...records.values()].map(({ state }) => state) };
}

test('of 20 messages of which 2 run, close gives 18 to another subscriber while those 2 end, and leaves no claim behind', async () => {
  const [topic] = await pubsub.createTopic('many');
  await topic.createSubscription('many-pull');
  const { store, states } = visibleStore();
  const dedup = createDedup({ consumer: 'c', store, system, log: silentLog });
  const warned: string[] = [];
  const log = { ...silentLog, warn: (fields: object, text: string) => void warned.push(`${text}: ${JSON.stringify(fields)}`) };
  const parts = { deadLetters: keptDeadLetters(), system, log };
  const hold = gate();
  const runs: string[] = [];
  const subscription = pubsub.subscription('many-pull');
  const handle = dedup(async ({ data }) => {
    runs.push(`first ${Buffer.from(data)}`);
    await hold.opened;
  });
  const pull = startPull({ ...parts, subscription, handle, options: { concurrency: 2 } });
  let received = 0;
  subscription.on('message', () => {
    received += 1;
  });
  await Promise.all(Array.from({ length: 20 }, (_, at) => topic.publishMessage({ data: Buffer.from(String(at)) })));
  await expect.poll(() => received).toBe(20);
  expect(runs).toHaveLength(2);
  expect(states()).toEqual(['running', 'running']);

  const closed = pull.close({ timeoutMs: 3_000 });
  const others: string[] = [];
  const other = startPull({
    ...parts,
    subscription: pubsub.subscription('many-pull'),
    handle: dedup(async ({ data }) => void others.push(`first ${Buffer.from(data)}`)),
  });
  await expect.poll(() => others.length, { timeout: 2_000 }).toBe(18);
  expect(states().toSorted()).toEqual([...Array(18).fill('done'), 'running', 'running']);
  hold.open();
  await closed;
  await pull.close();
  expect(states()).toEqual(Array(20).fill('done'));
  expect(new Set([...runs, ...others])).toHaveProperty('size', 20);

  await topic.publishMessage({ data: Buffer.from('last') });
  await expect.poll(() => others.length).toBe(19);
  await other.close();
  expect(others.at(-1)).toBe('first last');
  // The client has closed too, and understood for how long it may take.
  expect(warned).toEqual([]);
});
