import type { Clock } from '../shared/ports.ts';
import { timerHeap } from './timer-heap.ts';

/**
 * The one clock of an emulator: all three services read it and set their timers on it.
 *
 * `track` names work that happens in reaction to a timer (an HTTP dispatch, say): a manual advance waits for it before it
 * goes on, so that what the answer schedules is still run at its own instant.
 */
export type Time = Clock & {
  /** Runs once when `nowMs() >= dueAtMs`; an instant in the past runs as soon as possible. Returns the cancel. */
  at(dueAtMs: number, run: () => void): () => void;
  track<T>(work: Promise<T>): Promise<T>;
  /** Resolves when nothing is due now: every timer of the present and the past has run, and tracked work has ended. */
  settled(): Promise<void>;
  /** Cancels every timer. */
  close(): void;
};

export type ManualTime = Time & {
  /** Moves time forward, running everything due on the way in order of its instant, each at that instant. */
  advance(ms: number): Promise<void>;
};

/** Node fires a timer of more than 2^31-1 ms at once, so a long one is made of shorter ones. */
const longestTimerMs = 2 ** 31 - 1;

function trackedWork() {
  const underWay = new Set<Promise<unknown>>();
  return {
    underWay,
    track<T>(work: Promise<T>): Promise<T> {
      const ended: Promise<unknown> = work.then(
        () => underWay.delete(ended),
        () => underWay.delete(ended),
      );
      underWay.add(ended);
      return work;
    },
  };
}

/** Two turns of the event loop let what already stands on a socket be read. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** One timer of Node's for all: thousands of leases come and go each second, and hardly one of them runs out. */
export function realTime(): Time {
  const timers = timerHeap<() => void>();
  const { underWay, track } = trackedWork();
  const nowMs = () => Date.now();
  let armed: { readonly timer: NodeJS.Timeout; readonly dueAtMs: number } | undefined;

  const disarm = () => {
    clearTimeout(armed?.timer);
    armed = undefined;
  };
  const arm = () => {
    const dueAtMs = timers.nextAtMs();
    if (dueAtMs === undefined) return disarm();
    if (armed && armed.dueAtMs <= dueAtMs) return;
    disarm();
    armed = { dueAtMs, timer: setTimeout(fire, Math.min(Math.max(dueAtMs - nowMs(), 0), longestTimerMs)) };
  };
  const fire = () => {
    armed = undefined;
    try {
      for (let due = timers.take(nowMs()); due; due = timers.take(nowMs())) due.value();
    } finally {
      arm();
    }
  };
  const at = (dueAtMs: number, run: () => void) => {
    const timer = timers.add(dueAtMs, run);
    arm();
    return () => timers.cancel(timer);
  };
  return {
    nowMs,
    monotonicMs: () => performance.now(),
    at,
    after: (delayMs, run) => at(nowMs() + delayMs, run),
    track,
    async settled() {
      for (;;) {
        await turns();
        if (underWay.size > 0) await Promise.all(underWay);
        else if ((timers.nextAtMs() ?? Number.POSITIVE_INFINITY) > nowMs()) return;
      }
    },
    close() {
      timers.clear();
      disarm();
    },
  };
}

/** How long, in real ms, an advance waits for tracked work that does not end; such work may itself wait for time. */
const patienceMs = 250;

export function manualTime(startAtMs = Date.UTC(2026, 0, 1)): ManualTime {
  let nowMs = startAtMs;
  const timers = timerHeap<() => void>();
  const { underWay, track } = trackedWork();

  const quiet = async () => {
    await turns();
    if (underWay.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      Promise.all(underWay),
      new Promise((resolve) => {
        timer = setTimeout(resolve, patienceMs);
      }),
    ]);
    clearTimeout(timer);
  };
  const runUntil = async (untilMs: number) => {
    await quiet();
    for (let due = timers.take(untilMs); due; due = timers.take(untilMs)) {
      nowMs = Math.max(nowMs, due.dueAtMs);
      due.value();
      await quiet();
    }
    nowMs = Math.max(nowMs, untilMs);
  };
  const at = (dueAtMs: number, run: () => void) => {
    const timer = timers.add(dueAtMs, run);
    return () => timers.cancel(timer);
  };
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    at,
    after: (delayMs, run) => at(nowMs + delayMs, run),
    track,
    advance: (ms) => runUntil(nowMs + ms),
    settled: () => runUntil(nowMs),
    close: timers.clear,
  };
}
