import { ToolkitError } from '../errors.ts';
import { checkedKey } from '../message.ts';
import { meteredStore, telemetry } from '../metrics.ts';
import { type Options, readOptions } from '../options.ts';
import type { Context, Log, Meter, RecordStore } from '../ports.ts';
import { type Claimant, createClaims, type DedupClaim } from './claim.ts';
import type { DedupRecord } from './decide.ts';
import { dedupOptions } from './options.ts';
import { keptResult } from './outcomes.ts';
import { decodeResult } from './results.ts';
import { createRunner, type Ended, type Reconcile } from './run.ts';

export type IdempotentParts = Claimant & {
  readonly store: RecordStore<DedupRecord>;
  readonly log: Log;
  readonly meter?: Meter;
  /** With `effects: 'external'`: says what became of a run that died. */
  readonly reconcile?: Reconcile;
  readonly options?: Partial<Options<typeof dedupOptions>>;
};

/**
 * @param key of the work, under the consumer's name
 * @param fingerprint of what the work is done on: other work under a finished key is a KEY_CONFLICT
 * @returns what the work returned, now or the first time; `undefined` where that could not be kept
 * @throws IN_PROGRESS (with `retryAfterMs`), LEASE_LOST, KEY_CONFLICT, OUTCOME_UNKNOWN, STORE_UNAVAILABLE, RECORD_UNREADABLE,
 *   MALFORMED_MESSAGE for a key that is empty or no text; and what the work throws, which frees the key
 */
export type Idempotent = <T>(key: string, work: (context: Context) => Promise<T>, fingerprint?: string) => Promise<T>;

/**
 * Runs work once per key, beyond messages: a job, a request. The first result stands in the record and is given to whoever
 * asks again.
 * @throws INVALID_SETTINGS
 */
export function createIdempotent(parts: IdempotentParts): Idempotent {
  const { system, log, consumer, meter, reconcile } = parts;
  const { maxResultBytes, storeTimeoutMs, ...options } = readOptions(dedupOptions, parts.options);
  const watched = telemetry(consumer, log, meter);
  const store = meteredStore(parts.store, meter, system);
  const claimOf = createClaims(parts, options);
  type Asked = DedupClaim & { readonly work: (context: Context) => Promise<unknown> };
  const runOnce = createRunner(
    { store, system, telemetry: watched, storeTimeoutMs, reconcile },
    async ({ work, claim: { key } }: Asked, run): Promise<Ended<unknown>> => {
      const value = await work({ signal: run.signal(), fence: run.fence, idempotencyKey: key });
      return { value, state: 'done', result: keptResult({ maxResultBytes, telemetry: watched }, value, { key }) };
    },
  );

  return async <T>(givenKey: string, work: (context: Context) => Promise<T>, fingerprint = ''): Promise<T> => {
    const key = checkedKey(givenKey, 'the key');
    const outcome = await runOnce({ ...claimOf({ key, fingerprint }), work });
    switch (outcome.kind) {
      case 'ended':
        watched.count('ptk.dedup.handled', { outcome: 'processed' });
        return outcome.ended.value as T;
      case 'threw':
        watched.count('ptk.dedup.handled', { outcome: 'failed' });
        throw outcome.error;
      case 'duplicate': {
        watched.count('ptk.dedup.duplicates', { kind: 'redelivery' });
        const first = decodeResult(outcome.record.result);
        if (!first.isKept) log.warn({ key }, 'the first result was not kept');
        return (first.isKept ? first.value : undefined) as T;
      }
      case 'busy':
        watched.count('ptk.dedup.in_progress');
        throw new ToolkitError('IN_PROGRESS', `another run holds the key for ${outcome.retryAfterMs} ms`, undefined, outcome.retryAfterMs);
      case 'conflict':
        watched.count('ptk.dedup.conflicts');
        throw new ToolkitError('KEY_CONFLICT', 'other work is done under this key');
      case 'leaseLost':
        throw new ToolkitError('LEASE_LOST', 'another run took the key while this one went on');
      case 'escalated':
        throw new ToolkitError('OUTCOME_UNKNOWN', 'a run of this key died, and nobody could say whether it had its effects');
      case 'exhausted':
        throw new ToolkitError('REFUSED', `${parts.options?.maxAttempts} runs of this key failed`);
    }
  };
}
