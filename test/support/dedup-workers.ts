import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup, type DedupParts } from '../../src/shared/dedup/dedup.ts';
import { hash } from '../../src/shared/names.ts';
import type { Handler, Log, Meter } from '../../src/shared/ports.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { manualSystem } from './manual-system.ts';

export const context = () => ({ signal: new AbortController().signal });

/** A handler that counts its runs and answers, or throws, what it is given. */
export const counting = (answer: unknown = undefined) => {
  const handler = Object.assign(
    async () => {
      handler.runs += 1;
      if (answer instanceof Error) throw answer;
      return answer;
    },
    { runs: 0 },
  );
  return handler satisfies Handler;
};

/** Numbers as they were counted, each as `name {attributes}`. */
export function keptMeter(): Meter & { readonly counts: Map<string, number> } {
  const counts = new Map<string, number>();
  return {
    counts,
    record(name, { consumer: _, ...attributes }, value) {
      if (value !== undefined) return;
      const counted = [name, ...Object.values(attributes)].join(' ');
      counts.set(counted, (counts.get(counted) ?? 0) + 1);
    },
  };
}

/** Workers over one memory store and one manual clock; each has its own memory of what is running, as a process has. */
export function dedupWorkers() {
  const system = manualSystem();
  const records = memoryRecordStore<DedupRecord>(system.clock);
  const meter = keptMeter();
  const logged: { level: string; text: string; fields: object }[] = [];
  const at = (level: string) => (fields: object, text: string) => void logged.push({ level, text, fields });
  const log: Log = { ...silentLog, info: at('info'), warn: at('warn'), error: at('error') };
  return {
    system,
    records,
    meter,
    logged,
    worker: (parts: Partial<DedupParts> = {}) =>
      createDedup({
        consumer: 'c',
        store: records,
        system,
        log,
        meter,
        ...parts,
        options: { leaseMs: 3_000, ttlSeconds: 60, storeTimeoutMs: 1_000, ...parts.options },
      }),
    record: async (key: string) => (await records.get(`c~${hash(key)}`))?.record,
  };
}
