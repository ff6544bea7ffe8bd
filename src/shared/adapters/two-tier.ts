import type { DedupRecord } from '../dedup/decide.ts';
import { ToolkitError, textOf } from '../errors.ts';
import type { Log, PutResult, RecordStore, Stored, System } from '../ports.ts';
import { within } from '../waiting.ts';

/** What a fast store remembers of keys whose run has ended. It may forget any of them at any time, and must invent none. */
export interface DoneCache<R extends DedupRecord = DedupRecord> {
  /** What is kept, and the store's clock even where nothing is. */
  get(key: string): Promise<{ readonly nowMs: number; readonly stored: Stored<R> | undefined }>;
  /**
   * Keeps the record for its `ttlMs`, counted from `writtenAtMs` by this store's clock, however late the call arrives. Does nothing
   * once that is over, or where a record of this or a later `rev` is kept.
   */
  keep(key: string, record: R, writtenAtMs: number | 'now'): Promise<void>;
}

export type TwoTierParts<R extends DedupRecord = DedupRecord> = {
  readonly fast: DoneCache<R>;
  /** Decides. What it has not confirmed never reaches the fast tier. */
  readonly truth: RecordStore<R>;
  readonly system: Pick<System, 'clock'>;
  readonly log: Log;
  /** How long a call may wait for the fast tier before it goes on without; well below the `storeTimeoutMs` of its user. */
  readonly fastTimeoutMs?: number;
};

/** Of no record of the truth: nobody can write with it. */
const fastVersion = 'fast';
const warnEveryMs = 60_000;

/**
 * A fast store in front of the one that decides (protocol 1.7): most duplicates are known without asking the truth. A fast tier that is
 * gone, empty or silent costs time and nothing else.
 * @throws INVALID_SETTINGS
 */
export function twoTierRecordStore<R extends DedupRecord = DedupRecord>(parts: TwoTierParts<R>): RecordStore<R> {
  const { fast, truth, log, fastTimeoutMs = 250 } = parts;
  const { clock } = parts.system;
  if (!Number.isInteger(fastTimeoutMs) || fastTimeoutMs < 1 || fastTimeoutMs > 10_000)
    throw new ToolkitError('INVALID_SETTINGS', `fastTimeoutMs is ${fastTimeoutMs}; it must be a whole number from 1 to 10000`);
  /** The fast tier's clock less this process's own, when an answer of it came in: never ahead of it. */
  let aheadMs: number | undefined;
  let quietUntilMs = Number.NEGATIVE_INFINITY;

  const unlessDown = async <T>(call: string, work: Promise<T>): Promise<T | undefined> => {
    try {
      return await within(clock, fastTimeoutMs, 'STORE_UNAVAILABLE', 'the fast tier', work);
    } catch (error) {
      const nowMs = clock.monotonicMs();
      if (nowMs >= quietUntilMs) {
        quietUntilMs = nowMs + warnEveryMs;
        log.warn({ call, reason: textOf(error) }, 'going on without the fast tier');
      }
      return undefined;
    }
  };

  /** A live `done` of the same content; whether other content is a conflict is for the truth to say. */
  const knownDone = async (key: string, { fingerprint }: R): Promise<Stored<R> | undefined> => {
    const answer = await unlessDown('get', fast.get(key));
    if (!answer) return undefined;
    aheadMs = answer.nowMs - clock.monotonicMs();
    const { stored } = answer;
    if (stored?.record.v !== 1 || stored.record.state !== 'done' || stored.record.fingerprint !== fingerprint) return undefined;
    return stored.nowMs < stored.writtenAtMs + stored.record.ttlMs ? { ...stored, version: fastVersion } : undefined;
  };

  /** From before the truth was asked, so that the fast tier never knows a key for longer than the truth does. */
  const keepDone = async (key: string, record: R, sentAtMs: number): Promise<void> => {
    if (aheadMs !== undefined) await unlessDown('keep', fast.keep(key, record, sentAtMs + aheadMs));
  };

  return {
    get: (key) => truth.get(key),
    async put(key, record, expected, keepMs): Promise<PutResult<R>> {
      if (expected === fastVersion) return { conflict: await truth.get(key) };
      if (expected === 'absent' && record.state === 'running') {
        const conflict = await knownDone(key, record);
        if (conflict) return { conflict };
      }
      const sentAtMs = clock.monotonicMs();
      const result = await truth.put(key, record, expected, keepMs);
      if ('version' in result && record.state === 'done') await keepDone(key, record, sentAtMs);
      // In the place of a `done` from before an operator's redrive, and of its copy that is still under way.
      if ('version' in result && record.state === 'failed') await unlessDown('keep', fast.keep(key, record, 'now'));
      return result;
    },
  };
}
