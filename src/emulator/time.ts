import type { Clock } from '../shared/ports.ts';

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
  /** Cancels every timer. */
  close(): void;
};

export type ManualTime = Time & {
  /** Moves time forward, running everything due on the way in order of its instant, each at that instant. */
  advance(ms: number): Promise<void>;
};

/** Node fires a timer of more than 2^31-1 ms at once, so a long one is made of shorter ones. */
const longestTimerMs = 2 ** 31 - 1;

export function realTime(): Time {
  const timers = new Set<() => void>();
  const nowMs = () => Date.now();
  const at = (dueAtMs: number, run: () => void) => {
    let timer: NodeJS.Timeout;
    const cancel = () => {
      clearTimeout(timer);
      timers.delete(cancel);
    };
    const arm = () => {
      const waitMs = dueAtMs - nowMs();
      timer = setTimeout(
        () => {
          if (nowMs() < dueAtMs) return arm();
          timers.delete(cancel);
          run();
        },
        Math.min(Math.max(waitMs, 0), longestTimerMs),
      );
    };
    arm();
    timers.add(cancel);
    return cancel;
  };
  return {
    nowMs,
    monotonicMs: () => performance.now(),
    at,
    after: (delayMs, run) => at(nowMs() + delayMs, run),
    track: (work) => work,
    close: () => {
      for (const cancel of [...timers]) cancel();
    },
  };
}

/** How long, in real ms, an advance waits for tracked work that does not end; such work may itself wait for time. */
const settleMs = 250;

export function manualTime(startAtMs = Date.UTC(2026, 0, 1)): ManualTime {
  let nowMs = startAtMs;
  let serial = 0;
  const timers = new Map<number, { dueAtMs: number; run: () => void }>();
  const tracked = new Set<Promise<unknown>>();

  const at = (dueAtMs: number, run: () => void) => {
    const id = serial++;
    timers.set(id, { dueAtMs, run });
    return () => void timers.delete(id);
  };
  const settle = async () => {
    // Two turns of the event loop let answers already on a socket be read before the next timer is chosen.
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
    if (tracked.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      Promise.allSettled(tracked),
      new Promise((resolve) => {
        timer = setTimeout(resolve, settleMs);
      }),
    ]);
    clearTimeout(timer);
  };
  const nextDue = (untilMs: number) => {
    let first: [number, { dueAtMs: number; run: () => void }] | undefined;
    for (const entry of timers) if (entry[1].dueAtMs <= untilMs && (!first || entry[1].dueAtMs < first[1].dueAtMs)) first = entry;
    return first;
  };
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    at,
    after: (delayMs, run) => at(nowMs + delayMs, run),
    track(work) {
      const settled: Promise<unknown> = work.then(
        () => tracked.delete(settled),
        () => tracked.delete(settled),
      );
      tracked.add(settled);
      return work;
    },
    async advance(ms) {
      const untilMs = nowMs + ms;
      await settle();
      for (let due = nextDue(untilMs); due; due = nextDue(untilMs)) {
        const [id, { dueAtMs, run }] = due;
        timers.delete(id);
        nowMs = Math.max(nowMs, dueAtMs);
        run();
        await settle();
      }
      nowMs = Math.max(nowMs, untilMs);
    },
    close: () => timers.clear(),
  };
}
