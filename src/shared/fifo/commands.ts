import { type Options, readOptions } from '../options.ts';
import type { DeadLetters, Log, Stored, System, Version } from '../ports.ts';
import { settledGet, settledPut } from '../settled.ts';
import { within } from '../waiting.ts';
import { type Blocked, type Cursor, cursorOf, freshCursor, inEpoch, replayedFrom, resumed, skippedNext } from './cursor.ts';
import { heldMs } from './decide.ts';
import { fifoOptions } from './options.ts';
import { cursorKeyOf, type FifoStore, type Place } from './store.ts';
import type { Sweep } from './sweep.ts';

export type FifoCommandParts = {
  readonly consumer: string;
  readonly store: FifoStore;
  readonly system: System;
  readonly log: Log;
  /** Where a number that is passed over goes, if its message is parked. */
  readonly deadLetters: DeadLetters;
  /** Runs what a command has made possible, in this process; without it that waits for the next sweep of the consumer, which is due at once. */
  readonly sweep?: (stream: string) => Promise<Sweep>;
  readonly options?: Partial<Options<typeof fifoOptions>>;
};

/** Where a consumer stands in a stream. */
export type StreamStatus = {
  readonly stream: string;
  /** `unknown`: it has no cursor there. `waiting`: messages are parked, and the next number is not among them. */
  readonly state: 'unknown' | 'idle' | 'held' | 'blocked' | 'diverted' | 'waiting';
  readonly last: number;
  readonly epoch: number;
  readonly round: number;
  readonly attempts: number;
  /** How long its holder may still hold it. */
  readonly heldMs: number;
  readonly blocked: Blocked | null;
  readonly skipped: number;
  readonly parked: number;
  readonly lowestParked: { readonly epoch: number; readonly seq: number; readonly parkedAtMs: number } | null;
};

/** What an operator's command did; `refused` has changed nothing. */
export type CommandOutcome =
  | { readonly kind: 'done'; readonly status: StreamStatus }
  | { readonly kind: 'refused'; readonly reason: string };

/** `force` takes a stream from the process that holds it: its handler's commit is refused then, and its effect may have happened. */
export type Forced = { readonly force?: boolean };

export type FifoCommands = {
  status(stream: string): Promise<StreamStatus>;
  /** The streams that stand still, or go to a lane. */
  blocked(): Promise<readonly StreamStatus[]>;
  /** Passes over the next number; its message, if it is parked, is a dead letter, and so is one that comes later. */
  skip(stream: string, seq: number, how?: Forced): Promise<CommandOutcome>;
  /** Lets a blocked or diverted stream go on with the number at which it stopped. */
  resume(stream: string, how?: Forced): Promise<CommandOutcome>;
  /** Sets the position: behind number `to` (0: before the first) of an epoch; by default the epoch that waits in the park, or else the one it has. */
  reset(stream: string, position: { readonly epoch?: number; readonly to?: number } & Forced): Promise<CommandOutcome>;
  /** Has the numbers from `from` on handled again, as they come again after a seek of the subscription. */
  replay(stream: string, from: number, how?: Forced): Promise<CommandOutcome>;
};

/** A command that dies holds its stream for so long. */
const commandLeaseMs = 10_000;

const refused = (reason: string): CommandOutcome => ({ kind: 'refused', reason });

/** What an operator may do to a consumer's streams (protocol 4.11). A command claims the stream first, as a run does, so it never crosses one. */
export function createFifoCommands(parts: FifoCommandParts): FifoCommands {
  const { consumer, store, system, log, deadLetters } = parts;
  const { storeTimeoutMs } = readOptions(fifoOptions, parts.options);
  const { clock } = system;
  const storeParts = { store, system, storeTimeoutMs };
  const bounded = <T>(what: string, call: Promise<T>) => within(clock, storeTimeoutMs, 'STORE_UNAVAILABLE', what, call);

  const statusOf = async (stream: string, current: Stored<Cursor> | undefined): Promise<StreamStatus> => {
    const [parked, lowest] = await Promise.all([
      bounded('count', store.waiting(consumer, stream)),
      bounded('lowest', store.lowest(consumer, stream)),
    ]);
    const cursor = current ? cursorOf(current.record, `of stream ${stream}`) : freshCursor(0, 1);
    const { last, epoch, round, attempts, blocked } = cursor;
    const held = heldMs(current);
    const waits = lowest !== undefined && (lowest.epoch !== epoch || lowest.seq > last + 1);
    const idle = waits ? 'waiting' : 'idle';
    const state = !current ? 'unknown' : blocked ? (blocked.lane === undefined ? 'blocked' : 'diverted') : held > 0 ? 'held' : idle;
    const lowestParked = lowest ? { epoch: lowest.epoch, seq: lowest.seq, parkedAtMs: lowest.parkedAtMs } : null;
    return { stream, state, last, epoch, round, attempts, heldMs: held, blocked, skipped: cursor.skipped.length, parked, lowestParked };
  };

  /** What waits is looked at by the next sweep, wherever that runs. */
  const wake = async (stream: string): Promise<void> => {
    if (parts.sweep) await parts.sweep(stream);
    const lowest = await bounded('lowest', store.lowest(consumer, stream));
    if (lowest && !parts.sweep) await bounded('postpone', store.postpone([lowest], clock.nowMs()));
  };

  const change = async (
    stream: string,
    force: boolean | undefined,
    plan: (cursor: Cursor | undefined, unpark: Place[]) => Promise<((cursor: Cursor, writeId: string) => Cursor) | string>,
  ): Promise<CommandOutcome> => {
    const key = cursorKeyOf(consumer, stream);
    const current = await settledGet(storeParts, key);
    const left = heldMs(current);
    if (left > 0 && !force) return refused(`stream ${stream} is held for up to ${left} ms more; force takes it from its holder`);
    const before = current && cursorOf(current.record, `of stream ${stream}`);
    /** What the write takes out of the park. */
    const unpark: Place[] = [];
    const next = await plan(before, unpark);
    if (typeof next === 'string') return refused(next);
    const writeId = system.randomId();
    const changed = refused(`stream ${stream} was changed by another process; try again`);
    let expected: Version | 'absent' = 'absent';
    let held = freshCursor(0, 1);
    if (current && before) {
      held = { ...before, rev: before.rev + 1, runId: writeId, by: 0, started: 0, leaseMs: commandLeaseMs };
      const claimed = await settledPut(storeParts, key, held, current.version, 'forever');
      if (claimed.kind === 'lost') return changed;
      expected = claimed.version;
    }
    const write = { ...next(held, writeId), rev: held.rev + 1 };
    const written = await settledPut({ ...storeParts, store: store.beside({ unpark }) }, key, write, expected, 'forever');
    if (written.kind === 'lost') return changed;
    log.info({ consumer, stream, last: write.last, epoch: write.epoch, round: write.round }, 'stream changed by an operator');
    await wake(stream);
    return { kind: 'done', status: await statusOf(stream, await settledGet(storeParts, key)) };
  };

  return {
    status: async (stream) => statusOf(stream, await settledGet(storeParts, cursorKeyOf(consumer, stream))),

    async blocked() {
      const found = await bounded('blocked', store.blockedStreams(consumer));
      return await Promise.all(found.map(({ stream, cursor }) => statusOf(stream, cursor)));
    },

    skip: (stream, seq, { force } = {}) =>
      change(stream, force, async (cursor, unpark) => {
        if (!cursor) return `stream ${stream} has no cursor of consumer ${consumer}; reset gives it one`;
        if (cursor.last + 1 !== seq) return `number ${seq} of stream ${stream} is not the next one, which is ${cursor.last + 1}`;
        const place = { consumer, stream, epoch: cursor.epoch, seq };
        const { parked } = await bounded('look', store.look(cursorKeyOf(consumer, stream), place));
        // What is parked from here on is found by the sweep, under a number that was skipped.
        if (!parked) return skippedNext;
        // Before the cursor moves: a letter too many is better than one too few.
        const detail = `number ${seq} was skipped by an operator`;
        await deadLetters.publish(parked, { kind: 'deadLetter', reason: 'skipped', detail });
        unpark.push(place);
        return skippedNext;
      }),

    resume: (stream, { force } = {}) =>
      change(stream, force, async (cursor) => (cursor ? resumed : `stream ${stream} has no cursor of consumer ${consumer}`)),

    async reset(stream, { epoch: asked, to = 0, force }) {
      if (!Number.isSafeInteger(to) || to < 0) return refused(`to is ${to}; it must be a number from 0`);
      const lowest = await bounded('lowest', store.lowest(consumer, stream));
      return await change(stream, force, async (cursor) => {
        const epoch = asked ?? cursor?.blocked?.epoch ?? Math.max(lowest?.epoch ?? 0, cursor?.epoch ?? 0);
        if (epoch === 0) return `stream ${stream} has neither a cursor nor parked messages, so its epoch must be given`;
        if (cursor && epoch < cursor.epoch) return `epoch ${epoch} of stream ${stream} is over; it has ${cursor.epoch}`;
        return (claimed, writeId) => {
          if (!cursor) return { ...freshCursor(epoch, to + 1), opId: writeId };
          if (epoch > cursor.epoch) return { ...inEpoch(claimed, writeId, epoch, 1), last: to };
          const recent = claimed.recent.filter(({ seq }) => seq <= to);
          return { ...resumed(claimed, writeId), last: to, start: Math.min(claimed.start, to + 1), recent };
        };
      });
    },

    async replay(stream, from, { force } = {}) {
      return await change(stream, force, async (cursor) => {
        if (!cursor) return `stream ${stream} has no cursor of consumer ${consumer}`;
        if (!Number.isSafeInteger(from) || from < 1 || from > cursor.last + 1)
          return `from is ${from}; it must be a number from 1 to ${cursor.last + 1}, the next one of stream ${stream}`;
        return (claimed, writeId) => replayedFrom(claimed, writeId, from);
      });
    },
  };
}
