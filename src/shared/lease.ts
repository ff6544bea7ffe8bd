import { textOf } from './errors.ts';
import type { Log, Revised, Version } from './ports.ts';
import { type StoreParts, settledGet, settledPut } from './settled.ts';

export type Leased = Revised & { readonly leaseMs: number };

export type Claimed<R> = {
  readonly key: string;
  readonly record: R;
  readonly version: Version;
  /** Monotonic, before the claim was sent: by then at the earliest the lease began. */
  readonly sentAtMs: number;
  readonly keepMs: number | 'forever';
};

/** `recordLost`: written, but the store had lost the claim, so another run may have had the key meanwhile. */
export type LeaseEnd = 'applied' | 'recordLost' | 'lost';

export type Lease<R> = {
  /** Aborts when the lease is over by this process's own count, or when another run took over. */
  signal(): AbortSignal;
  /** Writes now; false when another run has taken over. */
  renew(): Promise<boolean>;
  /** Stops renewing and writes the last record of this run, unless another run holds the key by now. */
  end(last: (record: R) => R, keepMs: number | 'forever'): Promise<LeaseEnd>;
};

/**
 * Keeps a claim alive while its handler runs: renewed each third of the lease. All writes of the run go through one chain,
 * each with the version that the one before returned.
 */
export function holdLease<R extends Leased>(parts: StoreParts<R>, log: Log, claimed: Claimed<R>): Lease<R> {
  const { clock } = parts.system;
  const { key, keepMs } = claimed;
  const { leaseMs } = claimed.record;
  let { record, version, sentAtMs } = claimed;
  let state: 'held' | 'taken' | 'ended' = 'held';
  let abort: AbortController | undefined;
  let lostBecause: Error | undefined;
  /** The write under way; the next one waits for it. */
  let before: Promise<unknown> | undefined;
  let stopBeat = () => {};
  let stopDeadline = () => {};

  const lose = (reason: string) => {
    lostBecause ??= new Error(reason);
    abort?.abort(lostBecause);
  };
  /** By this process's own count: from the sending of its last write that is known to be there. */
  const watchDeadline = () => {
    stopDeadline();
    stopDeadline = clock.after(Math.max(sentAtMs + leaseMs - clock.monotonicMs(), 0), () => lose(`the lease of ${leaseMs} ms is over`));
  };
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    while (before !== undefined) await before;
    const done = work();
    before = done.catch(() => undefined);
    try {
      return await done;
    } finally {
      before = undefined;
    }
  };

  const renew = () =>
    inTurn(async () => {
      if (state !== 'held') return state === 'ended';
      const beganAtMs = clock.monotonicMs();
      const next = { ...record, rev: record.rev + 1 };
      const put = await settledPut(parts, key, next, version, keepMs);
      if (put.kind === 'lost') {
        // A record that the store has lost is no take-over: the end writes it again and says so.
        if (put.current === undefined) return true;
        state = 'taken';
        stopBeat();
        stopDeadline();
        lose('another run took over');
        return false;
      }
      record = next;
      version = put.version;
      sentAtMs = beganAtMs;
      watchDeadline();
      return true;
    });
  /** The first third needs no watch of the lease's end: it cannot come before. */
  const beat = (delayMs: number) => {
    stopBeat = clock.after(delayMs, () => {
      watchDeadline();
      renew()
        .catch((error: unknown) => log.warn({ key, reason: textOf(error) }, 'lease not renewed'))
        .finally(() => {
          if (state === 'held') beat(leaseMs / 3);
        });
    });
  };
  beat(Math.max(sentAtMs + leaseMs / 3 - clock.monotonicMs(), 0));

  return {
    signal() {
      abort ??= new AbortController();
      if (lostBecause) abort.abort(lostBecause);
      return abort.signal;
    },
    renew,
    end(last, endKeepMs) {
      stopBeat();
      if (state === 'held') state = 'ended';
      return inTurn(async () => {
        stopDeadline();
        if (state === 'taken') return 'lost';
        for (;;) {
          const next = last({ ...record, rev: record.rev + 1 });
          const put = await settledPut(parts, key, next, version, endKeepMs);
          if (put.kind === 'applied') return 'applied';
          const current = put.current ?? (await settledGet(parts, key));
          if (!current) {
            const again = await settledPut(parts, key, next, 'absent', endKeepMs);
            return again.kind === 'applied' ? 'recordLost' : 'lost';
          }
          if (current.record.runId !== record.runId) return 'lost';
          // Mine, by a renewal whose answer came late.
          record = current.record;
          version = current.version;
        }
      });
    },
  };
}
