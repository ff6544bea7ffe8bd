import { textOf } from './errors.ts';
import type { Log, RecordStore, Revised, Version } from './ports.ts';
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

export type LeaseLock<R> = {
  readonly record: R;
  readonly version: Version;
  /** @param written what is stored now, where that has changed */
  release(written?: { readonly record: R; readonly version: Version }): void;
};

export type Lease<R extends Revised> = {
  /** The revision of the claim: grows with every run of the key. */
  readonly fence: number;
  /** Aborts when the lease is over by this process's own count, or when another run took over. */
  signal(): AbortSignal;
  /** Writes now; false when another run has taken over. */
  renew(): Promise<boolean>;
  /**
   * Writes a change of the record and holds on; what was to be written is known to be there, or another run has taken over.
   * @param store as for `end`
   * @throws STORE_UNAVAILABLE, and then nothing is renewed any more
   */
  write(change: (record: R) => R, store?: RecordStore<R>): Promise<LeaseEnd>;
  /**
   * The turn for a write of the caller's own: until it is released nothing is renewed. `undefined` when another run has taken over.
   */
  lock(): Promise<LeaseLock<R> | undefined>;
  /** Stops renewing, and writes nothing: the lease runs out, or was given up by a write of the caller's own. */
  drop(): Promise<void>;
  /**
   * Stops renewing and writes the last record of this run, unless another run holds the key by now.
   * @param store what it is written through, where more is to be written with it
   */
  end(last: (record: R) => R, keepMs: number | 'forever', store?: RecordStore<R>): Promise<LeaseEnd>;
};

/**
 * Keeps a claim alive while its handler runs: renewed each third of the lease. One write at a time, each with the version that the one
 * before returned.
 */
export const holdLease = <R extends Leased>(parts: StoreParts<R>, log: Log, claimed: Claimed<R>): Lease<R> =>
  new HeldLease(parts, log, claimed);

/** There is one for each message that is handled: closures for its dozen steps would be most of what the message costs. */
class HeldLease<R extends Leased> implements Lease<R> {
  readonly #parts: StoreParts<R>;
  readonly #log: Log;
  readonly #key: string;
  readonly #keepMs: number | 'forever';
  readonly fence: number;
  #record: R;
  #version: Version;
  #sentAtMs: number;
  #state: 'held' | 'taken' | 'ended' = 'held';
  #abort: AbortController | undefined;
  #lostBecause: Error | undefined;
  /** Fulfilled once the renewal under way has ended, however it did. */
  #renewing: Promise<void> | undefined;
  #stopBeat: () => void;
  #stopDeadline: (() => void) | undefined;

  constructor(parts: StoreParts<R>, log: Log, { key, record, version, sentAtMs, keepMs }: Claimed<R>) {
    this.#parts = parts;
    this.#log = log;
    this.#key = key;
    this.#keepMs = keepMs;
    this.fence = record.rev;
    this.#record = record;
    this.#version = version;
    this.#sentAtMs = sentAtMs;
    const { clock } = parts.system;
    this.#stopBeat = clock.after(Math.max(sentAtMs + record.leaseMs / 3 - clock.monotonicMs(), 0), () => this.#beat());
  }

  signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#lostBecause) this.#abort.abort(this.#lostBecause);
    return this.#abort.signal;
  }

  async renew(): Promise<boolean> {
    while (this.#renewing !== undefined) await this.#renewing;
    if (this.#state !== 'held') return this.#state === 'ended';
    return await this.#inTurn(this.#renew());
  }

  async write(change: (record: R) => R, store?: RecordStore<R>): Promise<LeaseEnd> {
    while (this.#renewing !== undefined) await this.#renewing;
    if (this.#state !== 'held') return 'lost';
    this.#stopBeat();
    try {
      const end = await this.#inTurn(this.#settle(change, this.#keepMs, store));
      if (end === 'lost') this.#taken();
      else if (this.#state === 'held') this.#beatAfter(this.#record.leaseMs / 3);
      return end;
    } catch (error) {
      this.#state = 'ended';
      this.#stopDeadline?.();
      throw error;
    }
  }

  async end(last: (record: R) => R, keepMs: number | 'forever', store?: RecordStore<R>): Promise<LeaseEnd> {
    await this.drop();
    return this.#state === 'taken' ? 'lost' : this.#settle(last, keepMs, store);
  }

  #inTurn<T>(write: Promise<T>): Promise<T> {
    const done = () => {
      this.#renewing = undefined;
    };
    this.#renewing = write.then(done, done);
    return write;
  }

  async lock(): Promise<LeaseLock<R> | undefined> {
    while (this.#renewing !== undefined) await this.#renewing;
    if (this.#state !== 'held') return undefined;
    this.#stopBeat();
    const sentAtMs = this.#parts.system.clock.monotonicMs();
    const lease = this;
    let release = () => {};
    this.#renewing = new Promise((resolve) => {
      release = resolve;
    });
    return {
      record: this.#record,
      version: this.#version,
      release(written) {
        lease.#renewing = undefined;
        release();
        if (written) lease.#written(written.record, { version: written.version, sentAtMs }, 'applied');
        if (lease.#state === 'held') lease.#beatAfter(lease.#record.leaseMs / 3);
      },
    };
  }

  async drop(): Promise<void> {
    this.#stopBeat();
    if (this.#state === 'held') this.#state = 'ended';
    while (this.#renewing !== undefined) await this.#renewing;
    this.#stopDeadline?.();
  }

  /** Written on what is there of this run, a renewal whose answer came late included. */
  async #settle(change: (record: R) => R, keepMs: number | 'forever', store: RecordStore<R> | undefined): Promise<LeaseEnd> {
    const parts = store ? { ...this.#parts, store } : this.#parts;
    for (;;) {
      const next = change({ ...this.#record, rev: this.#record.rev + 1 });
      const put = await settledPut(parts, this.#key, next, this.#version, keepMs);
      if (put.kind === 'applied') return this.#written(next, put, 'applied');
      const current = put.current ?? (await settledGet(parts, this.#key));
      if (!current) {
        const again = await settledPut(parts, this.#key, next, 'absent', keepMs);
        return again.kind === 'applied' ? this.#written(next, again, 'recordLost') : 'lost';
      }
      if (current.record.runId !== this.#record.runId) return 'lost';
      this.#record = current.record;
      this.#version = current.version;
    }
  }

  #written(record: R, { version, sentAtMs }: { readonly version: Version; readonly sentAtMs: number }, end: LeaseEnd): LeaseEnd {
    this.#record = record;
    this.#version = version;
    this.#sentAtMs = sentAtMs;
    if (this.#state !== 'held') return end;
    // Whoever was told that the lease is over has been told; it is held anew from here on.
    if (this.#lostBecause) this.#abort = undefined;
    this.#lostBecause = undefined;
    if (this.#stopDeadline) this.#watchDeadline();
    return end;
  }

  async #renew(): Promise<boolean> {
    for (;;) {
      const next = { ...this.#record, rev: this.#record.rev + 1 };
      const put = await settledPut(this.#parts, this.#key, next, this.#version, this.#keepMs);
      if (put.kind === 'applied') {
        this.#record = next;
        this.#version = put.version;
        this.#sentAtMs = put.sentAtMs;
        this.#watchDeadline();
        return true;
      }
      // A record that the store has lost is no take-over: the end writes it again and says so.
      if (put.current === undefined) return true;
      if (put.current.record.runId !== this.#record.runId) {
        this.#taken();
        return false;
      }
      // Mine, by a write of the holder's own.
      this.#record = put.current.record;
      this.#version = put.current.version;
    }
  }

  #taken(): void {
    this.#state = 'taken';
    this.#stopBeat();
    this.#stopDeadline?.();
    this.#lose('another run took over');
  }

  /** The first third needs no watch of the lease's end: it cannot come before. */
  #beat(): void {
    this.#watchDeadline();
    this.renew()
      .catch((error: unknown) => this.#log.warn({ key: this.#key, reason: textOf(error) }, 'lease not renewed'))
      .finally(() => {
        if (this.#state === 'held') this.#beatAfter(this.#record.leaseMs / 3);
      });
  }

  #beatAfter(delayMs: number): void {
    this.#stopBeat();
    this.#stopBeat = this.#parts.system.clock.after(delayMs, () => this.#beat());
  }

  /** By this process's own count: from the sending of its last write that is known to be there. */
  #watchDeadline(): void {
    const { clock } = this.#parts.system;
    const { leaseMs } = this.#record;
    this.#stopDeadline?.();
    this.#stopDeadline = clock.after(Math.max(this.#sentAtMs + leaseMs - clock.monotonicMs(), 0), () =>
      this.#lose(`the lease of ${leaseMs} ms is over`),
    );
  }

  #lose(reason: string): void {
    this.#lostBecause ??= new Error(reason);
    this.#abort?.abort(this.#lostBecause);
  }
}
