import { describe, expect, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { hash } from '../../src/shared/names.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { ack, deadLetter, nack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { context, counting } from '../support/dedup-workers.ts';
import { faultyStore, type StoreFault, silentStore } from '../support/faulty-store.ts';
import { gate, manualSystem, settled } from '../support/manual-system.ts';

const options = { leaseMs: 3_000, ttlSeconds: 60, storeTimeoutMs: 1_000 };

function setUp(faults: (StoreFault | 'none')[] = [], maxAttempts = 0) {
  const system = manualSystem();
  const records = memoryRecordStore<DedupRecord>(system.clock);
  const store = faultyStore(records, faults);
  /** Each has its own memory of what is running, as a process has. */
  const worker = (over: RecordStore<DedupRecord> = store) =>
    createDedup({ consumer: 'c', store: over, system, log: silentLog, options: { ...options, maxAttempts } });
  return { system, records, store, worker };
}

describe('dedup', () => {
  test('a second delivery of a finished message is acked and does not run', async () => {
    const { worker } = setUp();
    const handler = counting();
    const deliver = worker()(handler);
    expect(await deliver(testMessage(), context())).toEqual(ack('processed'));
    expect(await deliver(testMessage(), context())).toEqual(ack('duplicate'));
    expect(handler.runs).toBe(1);
  });

  test('a delivery to another worker while the first runs is not acked, and says when to come again', async () => {
    const { system, worker } = setUp();
    const hold = gate();
    const first = worker()(() => hold.opened)(testMessage(), context());
    await system.time.advance(500);
    expect(await worker()(counting())(testMessage(), context())).toEqual(nack('inProgress', 2_500));
    hold.open();
    expect(await first).toEqual(ack('processed'));
  });

  test('a copy in the same process joins the run and makes no store call', async () => {
    const { system, store, worker } = setUp();
    const hold = gate();
    const deliver = worker()(() => hold.opened);
    const both = [deliver(testMessage(), context()), deliver(testMessage({ messageId: '1' }), context())];
    await system.time.advance(0);
    expect(store.calls).toEqual(['put']);
    hold.open();
    expect(await Promise.all(both)).toEqual([ack('processed'), ack('duplicate')]);
  });

  test('a failed handler frees the key at once', async () => {
    const { worker } = setUp();
    expect(await worker()(counting(new Error('boom')))(testMessage({ attributes: { 'ptk-key': 'k' } }), context())).toEqual(nack('failed'));
    const handler = counting();
    expect(await worker()(handler)(testMessage({ attributes: { 'ptk-key': 'k' } }), context())).toEqual(ack('processed'));
    expect(handler.runs).toBe(1);
  });

  test('a killed run is taken over when its lease is over, not before', async () => {
    const { system, records, worker } = setUp();
    // A dead worker writes no more: after its claim nothing of it reaches the store.
    const silent = silentStore<DedupRecord>();
    const dying = {
      get: silent.get,
      put: (...args: Parameters<typeof records.put>) => (args[2] === 'absent' ? records.put(...args) : silent.put(...args)),
    };
    void worker(dying)(() => new Promise(() => {}))(testMessage(), context());
    await system.time.advance(2_999);
    const handler = counting();
    expect(await worker()(handler)(testMessage(), context())).toEqual(nack('inProgress', 1));
    await system.time.advance(1);
    expect(await worker()(handler)(testMessage(), context())).toEqual(ack('processed'));
    expect(handler.runs).toBe(1);
  });

  test.each<[string, (StoreFault | 'none')[]]>([
    ['the answer of the claim', ['answer-lost']],
    ['the claim itself', ['failed']],
    ['the claim, in front of its own repetition', ['own-conflict']],
    ['the answer of the end', ['none', 'answer-lost']],
    ['the end itself', ['none', 'failed']],
    ['the end, in front of its own repetition', ['none', 'own-conflict']],
    ['both answers', ['answer-lost', 'answer-lost']],
  ])('runs once and is acked though the store loses %s', async (_, faults) => {
    const { system, worker } = setUp(faults);
    const handler = counting();
    expect(await settled(system, worker()(handler)(testMessage(), context()))).toEqual(ack('processed'));
    expect(await worker()(handler)(testMessage(), context())).toEqual(ack('duplicate'));
    expect(handler.runs).toBe(1);
  });

  test('a store that never answers gives the delivery back, unrun', async () => {
    const { system, worker } = setUp();
    const handler = counting();
    expect(await settled(system, worker(silentStore())(handler)(testMessage(), context()))).toEqual(nack('storeUnavailable'));
    expect(handler.runs).toBe(0);
  });

  test('another message under a finished key is a dead letter', async () => {
    const { worker } = setUp();
    await worker()(counting())(testMessage({ attributes: { 'ptk-key': 'k' }, data: 'a' }), context());
    expect(await worker()(counting())(testMessage({ attributes: { 'ptk-key': 'k' }, data: 'b' }), context())).toMatchObject({
      kind: 'deadLetter',
      reason: 'conflict',
    });
  });

  test('after the number of failed runs allowed the message is a dead letter', async () => {
    const { worker } = setUp([], 2);
    const failing = counting(new Error('boom'));
    await worker()(failing)(testMessage(), context());
    await worker()(failing)(testMessage(), context());
    expect(await worker()(failing)(testMessage(), context())).toMatchObject({ kind: 'deadLetter', reason: 'attempts' });
    expect(failing.runs).toBe(2);
  });

  test('a verdict of the handler is passed on, and one that is not acked frees the key without counting', async () => {
    const { records, worker } = setUp();
    expect(await worker()(counting(nack('early')))(testMessage({ messageId: '9' }), context())).toEqual(nack('early'));
    expect(await worker()(counting(deadLetter('refused', 'no')))(testMessage({ messageId: '9' }), context())).toEqual(
      deadLetter('refused', 'no', 'projects/test/subscriptions/test/9'),
    );
    expect((await records.get(`c~${hash('projects/test/subscriptions/test/9')}`))?.record).toMatchObject({ state: 'failed', attempts: 0 });
  });

  test('an empty key is a dead letter and nothing is claimed', async () => {
    const { store, worker } = setUp();
    expect(await worker()(counting())(testMessage({ attributes: { 'ptk-key': '' } }), context())).toMatchObject({
      kind: 'deadLetter',
      reason: 'malformed',
    });
    expect(store.calls).toEqual([]);
  });

  test('two messages of equal body and no key of their own both run', async () => {
    const { worker } = setUp();
    const handler = counting();
    await worker()(handler)(testMessage({ messageId: '1', data: 'same' }), context());
    await worker()(handler)(testMessage({ messageId: '2', data: 'same' }), context());
    expect(handler.runs).toBe(2);
  });

  test('a handler that changes its message still ends its own claim', async () => {
    const { worker } = setUp();
    const deliver = worker()(async ({ attributes }) => void Object.assign(attributes, { 'ptk-key': 'other' }));
    await deliver(testMessage({ attributes: { 'ptk-key': 'k' } }), context());
    const handler = counting();
    expect(await worker()(handler)(testMessage({ attributes: { 'ptk-key': 'k' } }), context())).toEqual(ack('duplicate'));
    expect(handler.runs).toBe(0);
  });
});
