import { errorCodeOf, ToolkitError } from './errors.ts';
import type { RecordStore, Revised, Stored, System, Version } from './ports.ts';
import { jittered, pause, within } from './waiting.ts';

export type StoreParts<R extends Revised> = { readonly store: RecordStore<R>; readonly system: System; readonly storeTimeoutMs: number };
/** `sentAtMs`: monotonic, before the first try was sent. */
export type Settled<R> = { readonly sentAtMs: number } & (
  | { readonly kind: 'applied'; readonly version: Version }
  | { readonly kind: 'lost'; readonly current: Stored<R> | undefined }
);

const retryPauseMs = 50;

/**
 * A put whose outcome is known (protocol 0.2): after an error or a conflict the record is read. It shows this very write:
 * applied. It still shows the expected version: the identical write is sent again, and at most one of the two can apply.
 * Anything else: the write is dead for ever, and the caller decides afresh.
 * @throws STORE_UNAVAILABLE once `storeTimeoutMs` is over; the write may still land
 */
export async function settledPut<R extends Revised>(
  parts: StoreParts<R>,
  key: string,
  record: R,
  expected: Version | 'absent',
  keepMs: number | 'forever',
): Promise<Settled<R>> {
  const { store, system, storeTimeoutMs } = parts;
  const { clock } = system;
  const sentAtMs = clock.monotonicMs();
  let unclear: unknown;
  for (let leftMs = storeTimeoutMs; ; leftMs = sentAtMs + storeTimeoutMs - clock.monotonicMs()) {
    if (leftMs <= 0) throw unclear ?? new ToolkitError('STORE_UNAVAILABLE', `the outcome of a put was open for ${storeTimeoutMs} ms`);
    let current: Stored<R> | undefined;
    try {
      const result = await within(clock, leftMs, 'STORE_UNAVAILABLE', 'put', store.put(key, record, expected, keepMs));
      if ('version' in result) return { kind: 'applied', version: result.version, sentAtMs };
      current = result.conflict;
    } catch (error) {
      if (errorCodeOf(error) !== 'STORE_UNAVAILABLE') throw error;
      unclear ??= error;
      await pause(clock, jittered(system, retryPauseMs));
      const read = await settledGet(parts, key).catch(() => 'unread' as const);
      if (read === 'unread') continue;
      current = read;
    }
    if (current && isWrite(record, current.record)) {
      return { kind: 'applied', version: current.version, sentAtMs };
    }
    if ((current?.version ?? 'absent') !== expected) return { kind: 'lost', current, sentAtMs };
  }
}

const isWrite = ({ rev, runId, opId }: Revised, stored: Revised): boolean =>
  stored.rev === rev && stored.runId === runId && stored.opId === opId;

/**
 * What is stored, within the time allowed.
 * @throws STORE_UNAVAILABLE
 */
export const settledGet = <R extends Revised>(
  { store, system, storeTimeoutMs }: StoreParts<R>,
  key: string,
): Promise<Stored<R> | undefined> => within(system.clock, storeTimeoutMs, 'STORE_UNAVAILABLE', 'get', store.get(key));
