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
  readonly signal: AbortSignal;
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
  const abort = new AbortController();
  let { record, version } = claimed;
  let taken = false;
  let chain: Promise<unknown> = Promise.resolve();
  let stopBeat = () => {};
  let stopDeadline = () => {};

  const leaseFrom = (sentAtMs: number) => {
    stopDeadline();
    stopDeadline = clock.after(Math.max(sentAtMs + leaseMs - clock.monotonicMs(), 0), () =>
      abort.abort(new Error(`the lease of ${leaseMs} ms is over`)),
    );
  };
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = chain.then(work);
    chain = done.catch(() => undefined);
    return done;
  };
  const lost = () => {
    taken = true;
    stopBeat();
    abort.abort(new Error('another run took over'));
  };

  const renew = () =>
    inTurn(async () => {
      if (taken) return false;
      const sentAtMs = clock.monotonicMs();
      const next = { ...record, rev: record.rev + 1 };
      const put = await settledPut(parts, key, next, version, keepMs);
      if (put.kind === 'lost') {
        // A record that the store has lost is no take-over: the end writes it again and says so.
        if (put.current) lost();
        return put.current === undefined;
      }
      record = next;
      version = put.version;
      leaseFrom(sentAtMs);
      return true;
    });
  const beat = () => {
    stopBeat = clock.after(leaseMs / 3, () => {
      renew()
        .catch((error: unknown) => log.warn({ key, reason: textOf(error) }, 'lease not renewed'))
        .finally(() => {
          if (!taken && !ended) beat();
        });
    });
  };
  let ended = false;
  leaseFrom(claimed.sentAtMs);
  beat();

  return {
    signal: abort.signal,
    renew,
    end(last, endKeepMs) {
      ended = true;
      stopBeat();
      return inTurn(async () => {
        stopDeadline();
        if (taken) return 'lost';
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
