import { describe, expect, test } from 'vitest';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { type StoreFault, silentStore } from '../support/faulty-store.ts';
import { idempotentWorkers, working } from '../support/idempotent-workers.ts';
import { gate, settled } from '../support/manual-system.ts';

const code = (text: string, more = {}) => expect.objectContaining({ code: text, ...more });

/** A run that claims its key and then dies: nothing of it reaches the store any more. */
async function diedAfterClaim({ system, records, worker }: ReturnType<typeof idempotentWorkers>): Promise<void> {
  const silent = silentStore<DedupRecord>();
  const dying: RecordStore<DedupRecord> = {
    get: silent.get,
    put: (...args) => (args[2] === 'absent' ? records.put(...args) : silent.put(...args)),
  };
  void worker(dying)('k', () => new Promise(() => {}));
  await system.time.advance(3_000);
}

describe('who may run', () => {
  test('another key runs, and another consumer with the same key', async () => {
    const { worker, store } = idempotentWorkers();
    expect(await worker()('a', working(1))).toBe(1);
    expect(await worker()('b', working(2))).toBe(2);
    expect(await worker(store, { consumer: 'others' })('a', working(3))).toBe(3);
  });

  test('a throw is thrown on, and frees the key', async () => {
    const { worker } = idempotentWorkers();
    const boom = new Error('boom');
    await expect(worker()('k', working(boom))).rejects.toBe(boom);
    expect(await worker()('k', working('done'))).toBe('done');
  });

  test('after as many throws as are allowed the key is refused, unless its time is over', async () => {
    const { system, worker } = idempotentWorkers({ options: { maxAttempts: 2, ttlSeconds: 60 } });
    const boom = new Error('boom');
    await expect(worker()('k', working(boom))).rejects.toBe(boom);
    await expect(worker()('k', working(boom))).rejects.toBe(boom);
    await expect(worker()('k', working())).rejects.toEqual(code('REFUSED', { message: '2 runs of this key failed' }));
    await system.time.advance(60_000);
    expect(await worker()('k', working('done'))).toBe('done');
  });

  test('a second call while the first runs is told when to come again', async () => {
    const { system, worker } = idempotentWorkers();
    const hold = gate();
    const first = worker()('k', async () => {
      await hold.opened;
      return 'first';
    });
    await system.time.advance(500);
    await expect(worker()('k', working())).rejects.toEqual(code('IN_PROGRESS', { retryAfterMs: 2_500 }));
    hold.open();
    expect(await first).toBe('first');
    expect(await worker()('k', working())).toBe('first');
  });

  test('two calls of one process at once: one runs', async () => {
    const { worker } = idempotentWorkers();
    const idempotent = worker();
    const work = working(1);
    const outcomes = await Promise.allSettled([idempotent('k', work), idempotent('k', work)]);
    expect(outcomes).toEqual([
      { status: 'fulfilled', value: 1 },
      { status: 'rejected', reason: code('IN_PROGRESS') },
    ]);
    expect(work.runs).toBe(1);
  });

  test('other work under a finished key is a conflict, and the first stays', async () => {
    const { worker } = idempotentWorkers();
    await worker()('k', working(1), 'print a');
    await expect(worker()('k', working(2), 'print b')).rejects.toEqual(code('KEY_CONFLICT'));
    expect(await worker()('k', working(3), 'print a')).toBe(1);
  });

  test.each(['', ' \n', '\ud800', undefined, 7])('the key %j is refused, and nothing is stored', async (key) => {
    const { worker, store } = idempotentWorkers();
    const work = working();
    await expect(worker()(key as string, work)).rejects.toEqual(code('MALFORMED_MESSAGE'));
    expect([work.runs, store.calls]).toEqual([0, []]);
  });

  test('a key of 2,000 characters is one, and is told from another one', async () => {
    const { worker } = idempotentWorkers();
    expect(await worker()('k'.repeat(2_000), working(1))).toBe(1);
    expect(await worker()('k'.repeat(2_001), working(2))).toBe(2);
    expect(await worker()('k'.repeat(2_000), working(3))).toBe(1);
  });
});

describe('leases', () => {
  test('the work is told its key and a fence that grows', async () => {
    const { worker } = idempotentWorkers();
    const seen: unknown[] = [];
    const failing = async (context: object) => {
      seen.push(context);
      throw new Error('boom');
    };
    await worker()('k', failing).catch(() => {});
    await worker()('k', failing).catch(() => {});
    const signal = expect.any(AbortSignal);
    expect(seen).toEqual([
      { signal, fence: 1, idempotencyKey: 'k' },
      { signal, fence: 3, idempotencyKey: 'k' },
    ]);
  });

  test('a run that outlived its lease is told, and its end is not recorded', async () => {
    const { system, records, worker } = idempotentWorkers();
    const silent = silentStore<DedupRecord>();
    let cut = false;
    // A worker that is cut off: it renews nothing, and its end comes through.
    const cutOff: RecordStore<DedupRecord> = {
      get: (key) => (cut ? silent.get(key) : records.get(key)),
      put: (...args) => (cut ? silent.put(...args) : records.put(...args)),
    };
    const hold = gate();
    let signal = new AbortController().signal;
    const first = worker(cutOff, { options: { leaseMs: 3_000, storeTimeoutMs: 100 } })('k', async (context) => {
      signal = context.signal;
      await hold.opened;
      return 'first';
    });
    await system.time.advance(0);
    cut = true;
    await system.time.advance(2_999);
    expect(signal.aborted).toBe(false);
    await system.time.advance(1);
    expect(signal.aborted).toBe(true);
    expect(await worker()('k', working('second'))).toBe('second');
    cut = false;
    hold.open();
    await expect(settled(system, first)).rejects.toEqual(code('LEASE_LOST'));
    expect(await worker()('k', working())).toBe('second');
  });

  test('a run that died is taken over when its lease is over', async () => {
    const parts = idempotentWorkers();
    await diedAfterClaim(parts);
    expect(await parts.worker()('k', working('second'))).toBe('second');
  });
});

describe('with effects outside', () => {
  const effects = 'external' as const;
  test.each([
    ['done', undefined, 0],
    ['runAgain', 'again', 1],
  ] as const)('a run that died is reconciled: %s', async (answer, result, runs) => {
    const asked: string[] = [];
    const reconcile = async ({ key, state }: DedupRecord) => {
      asked.push(`${key} ${state}`);
      return answer;
    };
    const parts = idempotentWorkers({ effects, reconcile });
    await diedAfterClaim(parts);
    const work = working('again');
    expect(await parts.worker()('k', work)).toBe(result);
    expect(await parts.worker()('k', work)).toBe(result);
    expect([work.runs, asked]).toEqual([runs, ['k running']]);
  });

  test.each([['escalate' as const], [undefined]])('where the answer is %s it is not run', async (answer) => {
    const parts = idempotentWorkers({ effects, ...(answer && { reconcile: async () => answer }) });
    await diedAfterClaim(parts);
    const work = working();
    await expect(parts.worker()('k', work)).rejects.toEqual(code('OUTCOME_UNKNOWN'));
    expect(work.runs).toBe(0);
  });

  test('what reconcile throws is thrown on, and the run stays where it is', async () => {
    const boom = new Error('bank closed');
    const parts = idempotentWorkers({ effects, reconcile: () => Promise.reject(boom) });
    await diedAfterClaim(parts);
    const work = working();
    await expect(parts.worker()('k', work)).rejects.toBe(boom);
    await expect(parts.worker()('k', work)).rejects.toBe(boom);
    expect(work.runs).toBe(0);
  });
});

describe('the store', () => {
  test.each<[string, (StoreFault | 'none')[]]>([
    ['the answer of the claim', ['answer-lost']],
    ['the claim', ['failed']],
    ['the answer of the end', ['none', 'answer-lost']],
    ['the end, in front of its own repetition', ['none', 'own-conflict']],
  ])('run once though it loses %s', async (_, faults) => {
    const { system, worker } = idempotentWorkers({ faults });
    const work = working('done');
    expect(await settled(system, worker()('k', work))).toBe('done');
    expect(await worker()('k', work)).toBe('done');
    expect(work.runs).toBe(1);
  });

  test('nothing is run while it is down', async () => {
    const { system, worker } = idempotentWorkers({ options: { storeTimeoutMs: 1_000 } });
    const work = working();
    await expect(settled(system, worker(silentStore())('k', work))).rejects.toEqual(code('STORE_UNAVAILABLE'));
    expect(work.runs).toBe(0);
  });

  test('what it holds under the key and is no record is left alone', async () => {
    const { worker, records } = idempotentWorkers();
    const foreign: RecordStore<DedupRecord> = {
      get: async () => ({ record: { v: 2 } as unknown as DedupRecord, version: '1', writtenAtMs: 0, nowMs: 0 }),
      put: async () => ({ conflict: await foreign.get('') }),
    };
    const work = working();
    await expect(worker(foreign)('k', work)).rejects.toEqual(code('RECORD_UNREADABLE'));
    expect([work.runs, await records.get('k')]).toEqual([0, undefined]);
  });
});
