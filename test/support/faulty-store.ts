import { ToolkitError } from '../../src/shared/errors.ts';
import type { RecordStore, Revised } from '../../src/shared/ports.ts';

export type StoreFault =
  /** Applied; the caller hears an error. */
  | 'answer-lost'
  /** Not applied; the caller hears an error. */
  | 'failed'
  /** Applied; the caller hears that its own write is in the way, as a client that repeats a commit by itself does. */
  | 'own-conflict';

/** A store whose puts go wrong in the order given, and then work. */
export function faultyStore<R extends Revised>(
  store: RecordStore<R>,
  faults: (StoreFault | 'none')[],
): RecordStore<R> & { readonly calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    async get(key) {
      calls.push('get');
      return store.get(key);
    },
    async put(key, record, expected, keepMs) {
      calls.push('put');
      const fault = faults.shift();
      if (fault === 'failed') throw new ToolkitError('STORE_UNAVAILABLE', 'fault: not applied');
      const result = await store.put(key, record, expected, keepMs);
      if (fault === 'answer-lost') throw new ToolkitError('STORE_UNAVAILABLE', 'fault: answer lost');
      if (fault === 'own-conflict') return { conflict: await store.get(key) };
      return result;
    },
  };
}

/** A store that never answers. */
export const silentStore = <R extends Revised>(): RecordStore<R> => ({
  get: () => new Promise(() => {}),
  put: () => new Promise(() => {}),
});
