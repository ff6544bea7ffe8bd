import { textOf } from '../errors.ts';
import type { Telemetry } from '../metrics.ts';
import type { Entry } from '../outbox/decide.ts';
import type { Publisher, System } from '../ports.ts';
import { settledGet, settledPut } from '../settled.ts';
import { skippedNext } from './cursor.ts';
import { heldMs } from './decide.ts';
import { cursorKeyOf, type FifoStore, type Place } from './store.ts';

/** What is done about numbers that do not come, once they are missing for `gapTimeoutMs`; without it they are only reported. */
export type Gaps = {
  /** The outbox, where a publisher has written its numbers down. */
  readonly ledger: {
    find(stream: string, epoch: number, seq: number): Promise<Pick<Entry, 'state' | 'topic' | 'message'> | undefined>;
  };
  /** Publishes a number again whose entry still holds its message. */
  readonly publisher: Publisher;
  /** A number that nobody wrote down, of a publisher in `direct` mode: reported (default), or passed over, and a dead letter if it still comes. */
  readonly onMissing?: 'report' | 'skip';
};

type GapParts = {
  readonly consumer: string;
  readonly store: FifoStore;
  readonly system: System;
  readonly telemetry: Telemetry;
  readonly gaps: Gaps | undefined;
  readonly storeTimeoutMs: number;
};

/** As many of a gap are looked up in one sweep. */
const numbersAtOnce = 100;

/**
 * Looks missing numbers up, publishes again what can be, and passes over what was never written down (protocol 4.10).
 * @returns whether the stream may go on now
 */
export function createGapDoctor(parts: GapParts): (first: Place, before: number, waitingMs: number) => Promise<boolean> {
  const { consumer, gaps, telemetry } = parts;
  const { log, count } = telemetry;

  const skip = async ({ stream, epoch, seq }: Place): Promise<boolean> => {
    const key = cursorKeyOf(consumer, stream);
    const current = await settledGet(parts, key);
    // Without a cursor nobody knows where the consumer stands; that is for an operator.
    if (!current || current.record.epoch !== epoch || current.record.last + 1 !== seq) return false;
    if (heldMs(current) > 0 || current.record.blocked) return false;
    return (
      (await settledPut(parts, key, skippedNext(current.record, parts.system.randomId()), current.version, 'forever')).kind === 'applied'
    );
  };

  const lookUp = async ({ ledger, publisher, onMissing }: Gaps, place: Place): Promise<string> => {
    const entry = await ledger.find(place.stream, place.epoch, place.seq);
    if (!entry) return onMissing === 'skip' && (await skip(place)) ? 'skipped' : 'unknown';
    if (entry.state !== 'published') return entry.state;
    if (!entry.message) return 'published';
    await publisher.publish(entry.topic, [entry.message]);
    return 'published again';
  };

  return async (first, before, waitingMs) => {
    const found: Record<string, number> = {};
    const to = Math.min(before, first.seq + numbersAtOnce);
    for (let seq = first.seq; gaps && seq < to; seq++) {
      const fate = await lookUp(gaps, { ...first, seq }).catch((error: unknown) => {
        log.warn({ stream: first.stream, seq, reason: textOf(error) }, 'missing number not looked up');
        return 'not looked up';
      });
      found[fate] = (found[fate] ?? 0) + 1;
    }
    const { stream, epoch } = first;
    log.error(
      { stream, epoch, seq: first.seq, missing: before - first.seq, waitingMs, ...found },
      'a stream waits for a number that has not come',
    );
    if (found.skipped) count('ptk.fifo.skipped');
    return found.skipped === before - first.seq;
  };
}
