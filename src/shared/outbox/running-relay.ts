import { textOf } from '../errors.ts';
import { readOptions } from '../options.ts';
import { outboxOptions } from './options.ts';
import { createRelay, type RelayParts, type RelayPass } from './relay.ts';

export type RunningRelay = {
  /**
   * Begins nothing more, ends what is in flight, and gives its streams free. Terminate the Firestore client 50 ms later and not at once: a
   * listen that it is opening then would be a rejection that nobody handles.
   */
  stop(): Promise<void>;
};

/** A pass that had nothing to do is not the last one to see what was due: its publisher may be at it. */
const firstPauseMs = 100;
/** An entry is due from the instant at which its transaction began to be written, which a pass may have been before. */
const lateCommitMs = 5_000;

/**
 * A relay that runs until it is stopped: a pass after the other, woken when the next entry is due (`StreamStore.watch`), and in any
 * case every `relayPollMs`.
 *
 * @param onPass hears of each pass that did something
 */
export function startRelay(parts: RelayParts & { readonly onPass?: (pass: RelayPass) => void }): RunningRelay {
  const { streams, system, log, onPass } = parts;
  const { relayPollMs } = readOptions(outboxOptions, parts.options);
  const { clock } = system;
  const pass = createRelay(parts);
  const stopping = new AbortController();
  const { signal } = stopping;

  const passed = async (): Promise<boolean> => {
    try {
      const done = await pass({ signal });
      const isIdle = done.published + done.failed + done.dead === 0;
      if (!isIdle) onPass?.(done);
      return !isIdle;
    } catch (error) {
      log.warn({ reason: textOf(error) }, 'pass of the relay failed');
      return false;
    }
  };

  /** The instant of the entry that is due next, as the last wait saw it. */
  let seenDueAtMs: number | undefined;
  let pauseMs = 0;

  /** Until an entry is due; one that is there since the last pass, which could do nothing for it, is waited for longer each time. */
  const untilDue = (fromMs: number): Promise<void> =>
    new Promise((resolve) => {
      const cancels: (() => void)[] = [];
      const wake = () => {
        signal.removeEventListener('abort', wake);
        for (const cancel of cancels.splice(0)) cancel();
        resolve();
      };
      const wakeAfter = (delayMs: number) => cancels.push(clock.after(Math.max(delayMs, 0), wake));
      signal.addEventListener('abort', wake);
      wakeAfter(relayPollMs);
      cancels.push(
        streams.watch(
          fromMs - lateCommitMs,
          (dueAtMs) => {
            if (dueAtMs === undefined) return;
            pauseMs = dueAtMs === seenDueAtMs ? Math.min(Math.max(pauseMs * 2, firstPauseMs), relayPollMs) : 0;
            seenDueAtMs = dueAtMs;
            wakeAfter(Math.max(dueAtMs - clock.nowMs(), pauseMs));
          },
          (error) => log.warn({ reason: textOf(error) }, 'the relay is not woken by the store; it looks from time to time'),
        ),
      );
      if (signal.aborted) wake();
    });

  const run = async () => {
    while (!signal.aborted) {
      const fromMs = clock.nowMs();
      const isBusy = await passed();
      if (!isBusy) await untilDue(fromMs);
    }
  };
  const running = run();
  return {
    stop() {
      stopping.abort();
      return running;
    },
  };
}
