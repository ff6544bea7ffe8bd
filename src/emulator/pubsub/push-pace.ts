import type { Time } from '../time.ts';

const nacksBefore = 10;
const leastPauseMs = 100;
const mostPauseMs = 60_000;

/**
 * Pauses a push after ten nacks in a row: 100 ms, and twice as long after each nack that follows a pause, a minute at most. So does
 * production; a dead endpoint would keep both sides busy otherwise.
 */
export function pushPace(time: Time, wake: () => void) {
  let nacks = 0;
  let pausedUntilMs = 0;
  let cancelWake = () => {};
  const isPaused = () => time.nowMs() < pausedUntilMs;
  return {
    isPaused,
    acked(): void {
      nacks = 0;
    },
    nacked(): void {
      // What was under way when the pause began says nothing new.
      if (isPaused()) return;
      nacks += 1;
      if (nacks < nacksBefore) return;
      pausedUntilMs = time.nowMs() + Math.min(leastPauseMs * 2 ** (nacks - nacksBefore), mostPauseMs);
      cancelWake = time.at(pausedUntilMs, wake);
    },
    stop: () => cancelWake(),
  };
}
