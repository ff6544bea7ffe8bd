import { expect, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Revised } from '../../src/shared/ports.ts';
import { settledPut } from '../../src/shared/settled.ts';
import { faultyStore, silentStore } from '../support/faulty-store.ts';
import { manualSystem, settled } from '../support/manual-system.ts';

const record: Revised = { rev: 1, runId: 'me' };

test('a put that is never settled says what the store said first, and takes no longer than it may', async () => {
  const system = manualSystem();
  let puts = 0;
  const store = {
    get: () => Promise.reject(new ToolkitError('STORE_UNAVAILABLE', 'down')),
    put: () => Promise.reject(new ToolkitError('STORE_UNAVAILABLE', `refused ${++puts}`)),
  };
  const put = settledPut({ store, system, storeTimeoutMs: 500 }, 'k', record, 'absent', 'forever');
  await expect(settled(system, put)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/refused 1$/) });
  expect(puts).toBeGreaterThan(5);
});

test('a put that is never answered says how long it waited', async () => {
  const system = manualSystem();
  const put = settledPut({ store: silentStore(), system, storeTimeoutMs: 500 }, 'k', record, 'absent', 'forever');
  await expect(settled(system, put)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining('500 ms') });
});

test.each([
  ['failed', 2],
  ['answer-lost', 1],
  ['own-conflict', 1],
] as const)('a put met by %s is applied once, with %d puts', async (fault, puts) => {
  const system = manualSystem();
  const store = faultyStore(memoryRecordStore<Revised>(system.clock), [fault]);
  const sentAtMs = system.clock.monotonicMs();
  const put = settledPut({ store, system, storeTimeoutMs: 500 }, 'k', record, 'absent', 'forever');
  expect(await settled(system, put)).toEqual({ kind: 'applied', version: (await store.get('k'))?.version, sentAtMs });
  expect(store.calls.filter((call) => call === 'put')).toHaveLength(puts);
});
