import { ToolkitError } from '../errors.ts';
import type { Context, Handler, Stored, System } from '../ports.ts';
import { settledGet } from '../settled.ts';
import { jittered, pause } from '../waiting.ts';
import { type Cursor, keptFor, moved, released } from './cursor.ts';
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
  /** Of the run that holds the stream. */
  readonly runId: string;
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

const contentionTries = 8;
const contentionPauseMs = 200;

/**
 * Runs a group's handlers and moves the cursor behind them in one transaction, tried again where another one won.
 * @returns a function whose commit is known to be there; it @throws LEASE_LOST, IN_PROGRESS, STORE_UNAVAILABLE, or what refused a handler's write
 */
export function createInboxGroup<Transaction>(parts: InboxGroupParts<Transaction>): (group: Group) => Promise<GroupEnd> {
  const { clock, system, transactions, sweepAfterMs } = parts;
  const perform = createPerform(parts);

  /** In their order, until one holds the stream up, or reads what an earlier one is to write. */
  const handled = async ({ items, contextOf }: Group, held: Cursor, steps: Steps<Transaction>) => {
    const passed: GroupEnd['passed'][number][] = [];
    let { attempts, blocked } = held;
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
    held: Cursor,
    { passed, stops }: Pick<GroupEnd, 'passed' | 'stops'>,
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
    const park = stops?.parks && left ? { park: parkedFor(left.place, left.message, 'blocked', clock.nowMs(), sweepAfterMs) } : {};
    return { passed, stops, staying, isKept, write: { cursor, unpark: passed.map(({ item }) => item.place), ...park } };
  };

  return async (group) => {
    const [first] = group.items;
    if (!first) throw new Error('a group has at least one number');
    const key = cursorKeyOf(first.place.consumer, first.place.stream);
    for (let tries = 1; tries <= contentionTries; tries++) {
      let ended: ReturnType<typeof plan> | undefined;
      const work = async (current: Stored<Cursor> | undefined, steps: Steps<Transaction>) => {
        const held = current?.record;
        if (!held || held.runId !== group.runId || held.last + 1 !== first.place.seq)
          throw new ToolkitError('LEASE_LOST', 'another run took the stream');
        ended = plan(group, held, await handled(group, held, steps));
        return ended.write;
      };
      try {
        if ((await transactions.transact(key, work)) === 'committed' && ended) return ended;
      } catch (error) {
        // Its answer may have been lost: the cursor tells.
        if (!ended) throw error;
        const { cursor } = ended.write;
        const found = (await settledGet(parts, key))?.record;
        if (found && found.rev === cursor.rev && found.runId === cursor.runId && found.last === cursor.last) return ended;
        throw error;
      }
      await pause(clock, jittered(system, contentionPauseMs));
    }
    throw new ToolkitError('IN_PROGRESS', 'other transactions won every time');
  };
}
