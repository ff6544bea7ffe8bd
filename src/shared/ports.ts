import type { Message, OutgoingMessage } from './message.ts';
import type { MetricName } from './metrics.ts';
import type { DeadLetter, Verdict } from './verdict.ts';

/** Time as the library sees it. Only shells and the emulator hold a real one. */
export type Clock = {
  /** Wall clock, ms since 1970. Never compared with an instant that a store wrote. */
  nowMs(): number;
  /** Ms that only go forward; for the holder's own view of its lease. */
  monotonicMs(): number;
  /** Runs once after the delay; returns the cancel. */
  after(delayMs: number, run: () => void): () => void;
};

/** Time and chance, from the machine. */
export type System = {
  readonly clock: Clock;
  /** Unique for ever. */
  randomId(): string;
  /** From 0 up to but not including 1; for jitter. */
  random(): number;
};

/** Pino's shape. Fields hold ids, reasons and counts; never a payload or a secret. */
export type Log = {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
};

export type MetricAttributes = Readonly<Record<string, string>>;

/** OpenTelemetry's shape: a counter adds 1 where no value is given, a histogram keeps the value. */
export interface Meter {
  record(name: MetricName, attributes: MetricAttributes, value?: number): void;
}

/** Opaque; equal only to the version of the same write. */
export type Version = string;

/** What one run has written about a key. Each write raises `rev`, so every write is a change and `rev` fences. */
export type Revised = {
  readonly rev: number;
  /** Empty where nobody holds the key; `opId` then says whose write it is. */
  readonly runId: string;
  readonly opId?: string;
};

/** `writtenAtMs` and `nowMs`: when the record was written, and this read, both by the store's clock. */
export type Stored<R> = { readonly record: R; readonly version: Version; readonly writtenAtMs: number; readonly nowMs: number };

export type PutResult<R> = { readonly version: Version } | { readonly conflict: Stored<R> | undefined };

/** One record per key, changed only if nobody changed it since. */
export interface RecordStore<R extends Revised> {
  /**
   * What is stored under the key, expired or not.
   * @throws STORE_UNAVAILABLE
   */
  get(key: string): Promise<Stored<R> | undefined>;
  /**
   * Writes if the stored version is `expected` ('absent': nothing is stored, not even an expired record). Never partial. The
   * loser is told what is stored, which is nothing if the record has gone since. Kept for at least `keepMs` from the write.
   * @throws STORE_UNAVAILABLE and then the write may have been applied, may be later, or never
   */
  put(key: string, record: R, expected: Version | 'absent', keepMs: number | 'forever'): Promise<PutResult<R>>;
}

/** Publishes to a topic, given by its short or full name. */
export interface Publisher {
  /**
   * One request: the messages in this order, all or none. Resolves to their ids once the service has stored them.
   * @throws REFUSED the request can never succeed; SERVICE_UNAVAILABLE it may have been stored
   */
  publish(topic: string, messages: readonly OutgoingMessage[]): Promise<readonly string[]>;
}

/** A task's full name is `{queue}/tasks/{id}`; a second task of the same name is the same task. */
export type TaskName = { readonly queue: string; readonly id: string };

/** A task that calls the release handler with its body, or by itself posts it to the publish method of a topic. */
export type Task = TaskName & { readonly scheduledForMs: number; readonly body: Uint8Array; readonly publishTo?: string };

export type QueueState = 'running' | 'paused' | 'disabled' | 'missing';

/** Holds tasks until their time, by its own clock. */
export interface Scheduler {
  /**
   * Resolves once the task exists, or has existed under this name, whether this call made it or an earlier one did.
   * @throws MESSAGE_TOO_LARGE, REFUSED, SERVICE_UNAVAILABLE
   */
  schedule(task: Task): Promise<void>;
  /**
   * Takes a task away; one that is not there is fine, and one that runs goes on.
   * @throws SERVICE_UNAVAILABLE
   */
  remove(name: TaskName): Promise<void>;
  /**
   * Whether a task of the name waits or runs.
   * @throws SERVICE_UNAVAILABLE
   */
  exists(name: TaskName): Promise<boolean>;
  /**
   * Whether a queue dispatches.
   * @throws SERVICE_UNAVAILABLE
   */
  stateOf(queue: string): Promise<QueueState>;
}

/** What names stored bytes, and what they must be. */
export type PayloadRef = {
  readonly id: string;
  readonly bytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
};

/** Holds bytes that a task or a document cannot: a Firestore collection, a bucket. */
export interface PayloadStore {
  /**
   * Stores the bytes under the reference for at least `keepMs` from now; the same bytes again are fine. Resolves once all of it is there.
   * @throws STORE_UNAVAILABLE, and then part of it may be there
   */
  put(ref: PayloadRef, bytes: Uint8Array, keepMs: number): Promise<void>;
  /**
   * Exactly the bytes that the reference tells; `undefined` where they are not there, or not these.
   * @throws STORE_UNAVAILABLE
   */
  get(ref: PayloadRef): Promise<Uint8Array | undefined>;
  /**
   * Takes them away; what is not there is fine.
   * @throws STORE_UNAVAILABLE
   */
  remove(ref: PayloadRef): Promise<void>;
}

/** When something comes again. */
export type Recurrence = { readonly everyMs: number } | { readonly cron: string; readonly timeZone: string };

/** The occurrences of a recurrence. */
export interface Calendar {
  /**
   * The first occurrence after `afterMs`; with `everyMs` they are counted from `anchorMs`. `undefined` where there is none any more.
   * @throws MALFORMED_MESSAGE for a recurrence that cannot be read, naming what is wrong
   */
  next(recurrence: Recurrence, afterMs: number, anchorMs: number): number | undefined;
}

/** Takes what can never be handled. Resolves once it is stored there. */
export interface DeadLetters {
  publish(message: Message, verdict: DeadLetter): Promise<void>;
}

export type Context = {
  /** Aborts when the run must stop: its lease is over or another run took over. */
  readonly signal: AbortSignal;
  /** The dedup key: the same on every delivery of one message. */
  readonly idempotencyKey?: string;
  /** Grows with every run of the key or stream; a resource that remembers the highest one refuses an outlived run. */
  readonly fence?: number;
  /** How many deliveries the transport handles at once, where it says so: a layer that lets some wait leaves room for others. */
  readonly places?: number;
  /** Grows when an operator has the numbers of a stream handled again; a dedup key counts for one round. */
  readonly round?: number;
};

/** A throw is a failure. A returned `Verdict` is passed on; anything else means that the message is processed. */
export type Handler<C extends Context = Context> = (message: Message, context: C) => Promise<unknown>;
/** A handler that says what becomes of the delivery; it does not throw. */
export type VerdictHandler = (message: Message, context: Context) => Promise<Verdict>;
