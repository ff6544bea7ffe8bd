import { contentionPauseMs, contentionTries } from '../dedup/inbox.ts';
import { errorCodeOf, ToolkitError } from '../errors.ts';
import type { Lease, LeaseLock } from '../lease.ts';
import type { Context, Handler, System } from '../ports.ts';
import { settledGet } from '../settled.ts';
import { nack } from '../verdict.ts';
import { jittered, pause } from '../waiting.ts';
import { type Blocked, type Cursor, keptFor, moved, released } from './cursor.ts';
import { arrivalOf, recentOf } from './decide.ts';
import type { Item, Standing } from './hands.ts';
import { createPerform, type Passes, type Stops } from './perform.ts';
import type { RunParts } from './run.ts';
import { cursorKeyOf, parkedFor } from './store.ts';
import type { CursorWrite, FifoTransactions, Step, Steps } from './transactions.ts';

export type InboxGroupParts<Transaction> = RunParts & {
  readonly transactions: FifoTransactions<Transaction>;
  readonly system: System;
  readonly storeTimeoutMs: number;
  /** The user's handler for one step: it runs unless its message is done already, and its record is written with what it writes. */
  readonly once: (step: Step<Transaction>) => Handler;
};

/** Numbers that follow each other, to be handled in one transaction. */
export type Group = {
  readonly lease: Lease<Cursor>;
  /** Of the first of them. */
  readonly attempts: number;
  readonly blocked: Blocked | null;
  readonly items: readonly Item[];
  /** What is known to follow them. */
  readonly more: Item | undefined;
  readonly standing: Standing;
  readonly contextOf: (item: Item) => Context;
};

/** What the transaction came to: the numbers that it ended, who stands for the stream from here on, and whether it is held on. */
export type GroupEnd = {
  readonly passed: readonly (Passes & { readonly item: Item })[];
  readonly stops: Stops | undefined;
  readonly staying: Standing;
  readonly isKept: boolean;
};

/**
 * Runs a group's handlers and moves the cursor behind them in one transaction, tried again where another one won.
 * @returns a function whose commit is known to be there; it @throws LEASE_LOST, IN_PROGRESS, STORE_UNAVAILABLE, or what refused a handler's write
 */
export function createInboxGroup<Transaction>(parts: InboxGroupParts<Transaction>): (group: Group) => Promise<GroupEnd> {
  const { clock, system, telemetry, transactions, sweepAfterMs } = parts;
  const perform = createPerform(parts);

  /** In their order, until one holds the stream up, or reads what an earlier one is to write. */
  const handled = async ({ items, contextOf, ...group }: Group, steps: Steps<Transaction>) => {
    const passed: GroupEnd['passed'][number][] = [];
    let { attempts, blocked } = group;
    for (const item of items) {
      const step = steps.begin();
      const performed = await perform(parts.once(step), { ...item, context: contextOf(item), attempts, blocked });
      if (step.isStale()) break;
      if (performed.kind === 'stops') return { passed, stops: performed };
      step.keep();
      passed.push({ ...performed, item });
      ({ blocked } = performed);
      attempts = 0;
    }
    return { passed, stops: undefined };
  };

  const plan = (
    group: Group,
    { record: held, version }: LeaseLock<Cursor>,
    { passed, stops }: Pick<GroupEnd, 'passed' | 'stops'>,
    mayPark: boolean,
  ): GroupEnd & { readonly write: CursorWrite } => {
    const left = group.items[passed.length] ?? group.more;
    const lastInHand = passed.findLast(({ item }) => item.delivery)?.item.delivery;
    const staying = left?.delivery ?? lastInHand ?? group.standing;
    const isKept = !stops && left !== undefined;
    const last = passed.at(-1);
    const recent = passed.flatMap(
      ({ item: { message, place } }) => recentOf(arrivalOf(message, { epoch: place.epoch, sequence: place.seq })) ?? [],
    );
    const next = { ...(last ? moved(held, last.item.place.seq, recent) : held), rev: held.rev + 1, blocked: last?.blocked ?? held.blocked };
    const cursor = isKept ? keptFor(next, staying.place.seq) : released(stops ? stops.change(next) : next);
    const park =
      mayPark && stops?.parks && left ? { park: parkedFor(left.place, left.message, 'blocked', clock.nowMs(), sweepAfterMs) } : {};
    // What cannot be parked stays where it is, and comes again.
    const stopped = stops?.parks && !mayPark ? { ...stops, verdict: nack('blocked') } : stops;
    return {
      passed,
      stops: stopped,
      staying,
      isKept,
      write: { cursor, expected: version, unpark: passed.map(({ item }) => item.place), ...park },
    };
  };

  return async (group) => {
    const [first] = group.items;
    if (!first) throw new Error('a group has at least one number');
    const key = cursorKeyOf(first.place.consumer, first.place.stream);
    let mayPark = true;
    for (let tries = 1; tries <= contentionTries; tries++) {
      let ended: (ReturnType<typeof plan> & { readonly lock: LeaseLock<Cursor> }) | undefined;
      const work = async (steps: Steps<Transaction>) => {
        const done = await handled(group, steps);
        const lock = await group.lease.lock();
        if (!lock) throw lost();
        ended = { ...plan(group, lock, done, mayPark), lock };
        return ended.write;
      };
      const outcome = await transactions.transact(key, work).catch((error: unknown) => ({ error }));
      if (!ended) {
        if (typeof outcome === 'object') throw outcome.error;
        await pause(clock, jittered(system, contentionPauseMs));
        continue;
      }
      const { lock, write } = ended;
      if (typeof outcome === 'object' && errorCodeOf(outcome.error) === 'MESSAGE_TOO_LARGE') {
        lock.release();
        telemetry.count('ptk.fifo.not_parked');
        mayPark = false;
        continue;
      }
      const found = await settledGet(parts, key).catch((error: unknown) => {
        lock.release();
        throw error;
      });
      lock.release(found);
      // Also where its answer was lost.
      if (found && isWritten(found.record, write.cursor)) return ended;
      if (found?.record.runId !== lock.record.runId) throw lost();
      if (typeof outcome === 'object') throw outcome.error;
      await pause(clock, jittered(system, contentionPauseMs));
    }
    throw new ToolkitError('IN_PROGRESS', 'other transactions won every time');
  };
}

const lost = () => new ToolkitError('LEASE_LOST', 'another run took the stream');

const isWritten = (found: Cursor, { rev, runId, opId }: Cursor): boolean =>
  found.rev === rev && found.runId === runId && found.opId === opId;
