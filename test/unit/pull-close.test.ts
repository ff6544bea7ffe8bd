import { describe, expect, test } from 'vitest';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { memoryRecordStore, silentLog } from '../../src/testing/doubles.ts';
import { fakePull } from '../support/fake-subscription.ts';
import { gate, manualSystem } from '../support/manual-system.ts';

const closing = ['closeOptions', 'closed'];

/** One delivery runs until the test ends it; the others wait. */
function busyPull() {
  const hold = gate();
  const signals: AbortSignal[] = [];
  const pulled = fakePull(
    async (_, { signal }) => {
      signals.push(signal);
      await hold.opened;
      return ack('processed');
    },
    { options: { concurrency: 1, closeTimeoutMs: 700 } },
  );
  return { ...pulled, hold, signals };
}

describe('close', () => {
  test('waits for what is running, and acks it', async () => {
    const { fake, system, pull, hold, signals, timers } = busyPull();
    fake.deliver('1');
    const closed = pull.close();
    await system.time.settled();
    expect(fake.done).toEqual(closing);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    hold.open();
    await closed;
    expect([fake.done, timers.size]).toEqual([[...closing, 'ack 1'], 0]);
  });

  test('gives back at once what waits, and what comes after', async () => {
    const { fake, pull, hold, signals } = busyPull();
    for (const id of ['1', '2', '3']) fake.deliver(id);
    const closed = pull.close();
    fake.deliver('4');
    expect(fake.done).toEqual([...closing, 'nack 2', 'nack 3', 'nack 4']);
    hold.open();
    await closed;
    expect(signals).toHaveLength(1);
    expect(fake.listenerCount('message')).toBe(0);
  });

  test('gives back at once what is held, and holds nothing more', async () => {
    const hold = gate();
    const { fake, system, pull, timers } = fakePull(async ({ messageId }) => {
      if (messageId === '2') await hold.opened;
      return nack('inProgress', 60_000);
    });
    fake.deliver('1');
    fake.deliver('2');
    await system.time.settled();
    const closed = pull.close();
    expect(fake.done).toEqual([...closing, 'nack 1']);
    hold.open();
    await closed;
    expect([fake.done, timers.size]).toEqual([[...closing, 'nack 1', 'nack 2'], 0]);
  });

  test.each([
    [undefined, 700],
    [{ timeoutMs: 3_000 }, 3_000],
    [{ timeoutMs: 0 }, 0],
  ])('aborts the signals once its time is over: %o', async (within, timeoutMs) => {
    const { fake, system, pull, hold, signals } = busyPull();
    fake.deliver('1');
    const closed = pull.close(within);
    await system.time.advance(timeoutMs - 1);
    expect(signals[0]?.aborted).toBe(false);
    await system.time.advance(1);
    expect(signals[0]?.reason).toMatchObject({ message: `the pull is closing, and its ${timeoutMs} ms are over` });
    hold.open();
    await closed;
    expect(fake.done).toEqual([...closing, 'ack 1']);
  });

  test('gives a handler a second to stop; what it says later settles nothing', async () => {
    const { fake, system, pull, hold, logged } = busyPull();
    fake.deliver('1');
    const closed = pull.close();
    await system.time.advance(1_699);
    expect(fake.done).toEqual(closing);
    await system.time.advance(1);
    await closed;
    hold.open();
    await system.time.settled();
    expect(fake.done).toEqual([...closing, 'nack 1']);
    expect(logged).toEqual([
      'error: handler left: it did not stop {"messageId":"1"}',
      'warn: ended after closing had left it {"messageId":"1","reason":"processed"}',
    ]);
  });

  test('is the same promise when called again', async () => {
    const { fake, pull } = busyPull();
    const closed = pull.close();
    expect(pull.close({ timeoutMs: 1 })).toBe(closed);
    await closed;
    expect(fake.done).toEqual(closing);
  });

  test('ends though the client does not, and says so', async () => {
    const { fake, system, pull, logged } = busyPull();
    fake.close = () => Promise.race([]);
    const closed = pull.close();
    await system.time.advance(2_000);
    await closed;
    expect(logged).toEqual([
      'warn: client not closed yet {"subscription":"projects/p/subscriptions/s","reason":"the closing client gave no answer within 2000 ms"}',
    ]);
  });
});

test('a handler that stops when it is told to frees its key at once', async () => {
  const system = manualSystem();
  const records = new Map<string, DedupRecord>();
  const memory = memoryRecordStore<DedupRecord>(system.clock);
  const store: typeof memory = {
    get: memory.get,
    put: async (key, record, expected, keepMs) => {
      const put = await memory.put(key, record, expected, keepMs);
      if ('version' in put) records.set(key, record);
      return put;
    },
  };
  const dedup = createDedup({ consumer: 'c', store, system, log: silentLog });
  const handle = dedup((_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))));
  const pulled = fakePull(handle);
  pulled.fake.deliver('1');
  await pulled.system.time.settled();
  expect([...records.values()]).toMatchObject([{ state: 'running' }]);
  const closed = pulled.pull.close({ timeoutMs: 500 });
  await pulled.system.time.advance(500);
  await closed;
  expect([...records.values()]).toMatchObject([{ state: 'failed' }]);
  expect(pulled.fake.done).toEqual([...closing, 'nack 1']);
});
