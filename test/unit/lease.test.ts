import { describe, expect, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { holdLease, type Leased } from '../../src/shared/lease.ts';
import type { Clock, RecordStore } from '../../src/shared/ports.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { faultyStore, type StoreFault } from '../support/faulty-store.ts';
import { gate, manualSystem } from '../support/manual-system.ts';

type Held = Leased & { readonly state: string };

/**
 * @param claimTookMs from sending the claim until it was known to be written
 * @param storeOf what the holder writes to from then on
 */
async function hold(
  faults: (StoreFault | 'none')[] = [],
  claimTookMs = 0,
  storeOf = (records: RecordStore<Held>, _clock: Clock) => records,
) {
  const system = manualSystem();
  const records = memoryRecordStore<Held>(system.clock);
  const record: Held = { rev: 1, runId: 'me', leaseMs: 3_000, state: 'running' };
  const put = await records.put('k', record, 'absent', 'forever');
  if (!('version' in put)) throw new Error('the key was taken');
  const parts = { store: faultyStore(storeOf(records, system.clock), faults), system, storeTimeoutMs: 500 };
  const lease = holdLease<Held>(parts, silentLog, {
    key: 'k',
    record,
    version: put.version,
    sentAtMs: system.clock.monotonicMs() - claimTookMs,
    keepMs: 'forever',
  });
  return { system, records, lease, store: parts.store };
}

const done = (record: Held): Held => ({ ...record, state: 'done' });

describe('lease', () => {
  test('is renewed each third of its length, so that it outlives it', async () => {
    const { system, records, lease } = await hold();
    await system.time.advance(999);
    expect((await records.get('k'))?.record.rev).toBe(1);
    await system.time.advance(1);
    expect((await records.get('k'))?.record.rev).toBe(2);
    await system.time.advance(9_000);
    expect(lease.signal().aborted).toBe(false);
    expect(await lease.end(done, 'forever')).toBe('applied');
    expect((await records.get('k'))?.record).toMatchObject({ state: 'done', runId: 'me', rev: 12 });
  });

  test('writes nothing more after its end', async () => {
    const { system, records, lease } = await hold();
    await lease.end(done, 'forever');
    await system.time.advance(10_000);
    expect((await records.get('k'))?.record.rev).toBe(2);
    expect(lease.signal().aborted).toBe(false);
  });

  test('aborts its run at its end by its own count when no renewal comes through', async () => {
    const { system, lease } = await hold(Array.from({ length: 200 }, () => 'failed'));
    await system.time.advance(2_999);
    expect(lease.signal().aborted).toBe(false);
    await system.time.advance(1);
    expect(lease.signal().aborted).toBe(true);
  });

  test.each([
    [2_500, 500],
    [2_999, 1],
    [3_500, 0],
  ])('counts from the sending of its claim: one that took %d ms is over after %d more', async (claimTookMs, leftMs) => {
    const { system, lease } = await hold(
      Array.from({ length: 200 }, () => 'failed'),
      claimTookMs,
    );
    await system.time.advance(Math.max(leftMs - 1, 0));
    expect(lease.signal().aborted).toBe(leftMs === 0);
    await system.time.advance(1);
    expect(lease.signal().aborted).toBe(true);
  });

  test('renews a third of its length after its claim was sent, and at once where that is past', async () => {
    for (const [claimTookMs, renewedAfterMs] of [
      [600, 400],
      [2_500, 0],
    ] as const) {
      const { system, records, lease } = await hold([], claimTookMs);
      await system.time.advance(Math.max(renewedAfterMs - 1, 0));
      expect((await records.get('k'))?.record.rev).toBe(renewedAfterMs === 0 ? 2 : 1);
      await system.time.advance(1);
      expect((await records.get('k'))?.record.rev).toBe(2);
      await system.time.advance(2_000);
      expect(lease.signal().aborted).toBe(false);
      await lease.end(done, 'forever');
    }
  });

  test('though outlived it ends what nobody has taken over', async () => {
    const { system, lease } = await hold(Array.from({ length: 30 }, () => 'failed'));
    await system.time.advance(3_500);
    expect(lease.signal().aborted).toBe(true);
    const end = lease.end(done, 'forever');
    await system.time.advance(5_000);
    expect(await end).toBe('applied');
  });

  test('is lost to a run that took over, which keeps its record', async () => {
    const { system, records, lease } = await hold();
    const current = await records.get('k');
    await records.put('k', { rev: 2, runId: 'other', leaseMs: 3_000, state: 'running' }, current?.version ?? '', 'forever');
    await system.time.advance(1_000);
    expect(lease.signal().aborted).toBe(true);
    expect(await lease.end(done, 'forever')).toBe('lost');
    expect((await records.get('k'))?.record).toMatchObject({ runId: 'other', state: 'running' });
  });

  test('ends though the answer of its last renewal was lost', async () => {
    const { system, records, lease } = await hold(['answer-lost']);
    await system.time.advance(1_100);
    expect(await lease.end(done, 'forever')).toBe('applied');
    expect((await records.get('k'))?.record).toMatchObject({ state: 'done', rev: 3 });
  });

  test('is lost to a run that took over after its last renewal: its end finds that out by itself', async () => {
    const { records, lease } = await hold();
    const current = await records.get('k');
    await records.put('k', { rev: 2, runId: 'other', leaseMs: 3_000, state: 'running' }, current?.version ?? '', 'forever');
    expect(await lease.end(done, 'forever')).toBe('lost');
    expect((await records.get('k'))?.record).toMatchObject({ runId: 'other', state: 'running' });
  });

  test('whose record the store has lost goes on, is not taken for lost, and writes its end anew', async () => {
    const { system, store, lease } = await hold([], 0, (_, clock) => memoryRecordStore<Held>(clock));
    await system.time.advance(2_500);
    expect([lease.signal().aborted, await store.get('k')]).toEqual([false, undefined]);
    expect(await lease.end(done, 'forever')).toBe('recordLost');
    expect((await store.get('k'))?.record).toMatchObject({ runId: 'me', state: 'done' });
  });

  test('sends its end only when the renewal under way has been answered', async () => {
    const answers = gate();
    const { system, store, lease } = await hold([], 0, (records) => ({
      get: records.get,
      put: async (...args) => {
        await answers.opened;
        return records.put(...args);
      },
    }));
    await system.time.advance(1_000);
    const end = lease.end(done, 'forever');
    await system.time.advance(0);
    expect(store.calls).toEqual(['put']);
    answers.open();
    expect([await end, store.calls]).toEqual(['applied', ['put', 'put']]);
  });
});
