import { textOf } from '../errors.ts';
import type { Log, System } from '../ports.ts';
import { within } from '../waiting.ts';
import { counted, type Histogram, hourOf } from './lateness.ts';
import type { LatenessStore } from './store.ts';

export type LatenessParts = { readonly store: LatenessStore; readonly system: System; readonly log: Log };

export type Lateness = {
  /** Counts a message that was published so late; `onPublished` of `createRelease`. Does not throw, and waits for nothing. */
  add(latenessMs: number): void;
  /** Writes what is not written yet; resolves within a second, whatever the store does. What is added later is written by another close. */
  close(): Promise<void>;
};

/** Of one document; also how long the store may take for it. */
const writeEveryMs = 10_000;
/** App Engine ends an instance about 3 s after SIGTERM (`docs/facts.md` D). */
const closeMs = 1_000;

/**
 * Counts how late messages were, for `pubsub-toolkit delay status`: in memory, and every 10 s at most in the store. A process that dies
 * takes its last counts along, and a store that is down costs counts alone.
 */
export function createLateness({ store, system, log }: LatenessParts): Lateness {
  const { clock } = system;
  const counter = system.randomId();
  const hours = new Map<number, Histogram>();
  const unwritten = new Set<number>();
  let cancel: (() => void) | undefined;
  let isClosed = false;
  /** One write after the other: an older count would take the place of a newer one. */
  let writing = Promise.resolve();

  const write = async () => {
    for (const hourAtMs of [...unwritten]) {
      const counts = hours.get(hourAtMs) ?? {};
      unwritten.delete(hourAtMs);
      try {
        await within(clock, writeEveryMs, 'STORE_UNAVAILABLE', 'put', store.put({ counter, hourAtMs, counts }));
      } catch (error) {
        unwritten.add(hourAtMs);
        log.warn({ reason: textOf(error) }, 'lateness not written; it is tried again');
      }
    }
    for (const hourAtMs of hours.keys()) if (hourAtMs < hourOf(clock.nowMs()) && !unwritten.has(hourAtMs)) hours.delete(hourAtMs);
    if (unwritten.size > 0) writeLater();
  };
  const writeNow = () => {
    writing = writing.then(write);
    return writing;
  };
  const writeLater = () => {
    if (isClosed) return;
    cancel ??= clock.after(writeEveryMs, () => {
      cancel = undefined;
      void writeNow();
    });
  };

  return {
    add(latenessMs) {
      const hourAtMs = hourOf(clock.nowMs());
      hours.set(hourAtMs, counted(hours.get(hourAtMs) ?? {}, latenessMs));
      unwritten.add(hourAtMs);
      writeLater();
    },
    async close() {
      isClosed = true;
      cancel?.();
      cancel = undefined;
      await within(clock, closeMs, 'STORE_UNAVAILABLE', 'the last write', writeNow()).catch((error: unknown) =>
        log.warn({ reason: textOf(error) }, 'lateness not written, as the process ends'),
      );
    },
  };
}
