import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createIdempotent, type IdempotentParts } from '../../src/shared/dedup/idempotent.ts';
import type { Log, RecordStore } from '../../src/shared/ports.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { faultyStore, type StoreFault } from './faulty-store.ts';
import { manualSystem } from './manual-system.ts';

type Parts = Partial<Omit<IdempotentParts, 'store'>> & { readonly faults?: (StoreFault | 'none')[] };

/** Workers that share a memory store whose puts go wrong in the order given. */
export function idempotentWorkers({ faults = [], ...parts }: Parts = {}) {
  const system = manualSystem();
  const records = memoryRecordStore<DedupRecord>(system.clock);
  const store = faultyStore(records, faults);
  const warnings: unknown[][] = [];
  const log: Log = { ...silentLog, warn: (...args) => warnings.push(args) };
  const counted: string[] = [];
  const meter = { record: (name: string, attributes: object) => void counted.push(`${name} ${Object.values(attributes).slice(1)}`.trim()) };
  /** Each of its own, as a process has. */
  const worker = (over: RecordStore<DedupRecord> = store, more: Partial<IdempotentParts> = {}) => {
    const { options, ...rest } = { ...parts, ...more };
    return createIdempotent({ consumer: 'jobs', store: over, system, log, ...rest, options: { leaseMs: 3_000, ...options } });
  };
  return {
    system,
    records,
    store,
    worker,
    warnings,
    /** With a meter; those of the store left out. */
    metered: () => worker(store, { meter }),
    counted: () => counted.filter((name) => !name.startsWith('ptk.store')),
  };
}

/** Work that counts its runs. */
export const working = (result: unknown = undefined) => {
  const work = Object.assign(
    async () => {
      work.runs += 1;
      if (result instanceof Error) throw result;
      return result;
    },
    { runs: 0 },
  );
  return work;
};
