import { malformed, ToolkitError } from '../errors.ts';
import { attribute, sequenceRefOf } from '../message.ts';
import { shardOf } from '../names.ts';
import { type Options, readOptions } from '../options.ts';
import type { Calendar, Log, PayloadStore, Publisher, Recurrence, Scheduler, Stored, System } from '../ports.ts';
import { type Draft, stamped } from '../publishing.ts';
import { type Settled, settledGet, settledPut } from '../settled.ts';
import { within } from '../waiting.ts';
import { armRecord, withoutInstructions } from './arming.ts';
import { afterwards, armScheduled, type LedgerParts, publishOwed, putSchedule } from './by-message.ts';
import { carry, keepLonger, keepMsUntil } from './carrying.ts';
import { decideCancel, decideReschedule, queueOf } from './decide.ts';
import { instantOf, type When } from './due.ts';
import { type DelayRecord, endedKeepMs, ledgerKeyOf, neverScheduled } from './ledger.ts';
import { delayOptions } from './options.ts';
import { pagesOf } from './pages.ts';
import type { DelayLedger, DelayState } from './store.ts';
import { type Targets, targetOf } from './targets.ts';

export type DelaysParts = Targets & {
  readonly ledger: DelayLedger;
  readonly payloads: PayloadStore;
  readonly scheduler: Scheduler;
  readonly queues: readonly string[];
  /** For the numbers of messages that are cancelled or replaced. */
  readonly publisher: Publisher;
  readonly calendar: Calendar;
  readonly system: System;
  readonly log: Log;
  readonly options?: Partial<Options<typeof delayOptions>>;
};

export type DelayedDraft = Omit<Draft, 'deliverAtMs' | 'delayMs'> & {
  /** Where it goes; one of the topics allowed. */
  readonly target?: string;
};

/**
 * When, and under which id: the same id again replaces what is pending. A recurrence begins at its first occurrence from now, or with
 * `everyMs` at the time given.
 */
export type Schedule = { readonly id?: string } & (
  | When
  | { readonly everyMs: number; readonly at?: number | Date | string }
  | { readonly cron: string; readonly timeZone?: string }
);

/** What is delayed under an id. */
export type Delayed = {
  readonly id: string;
  readonly state: DelayState;
  readonly generation: number;
  readonly dueAtMs: number;
  readonly target: string;
  readonly key: string;
  readonly recurrence: Recurrence | null;
  /** Of what was published last. */
  readonly messageId: string | null;
};

/** `cancelled`: it is never published, and never was. `tooLate`: it was published, or will be. */
export type Cancelled = { readonly outcome: 'cancelled' | 'tooLate' };
export type Rescheduled =
  | { readonly outcome: 'rescheduled'; readonly dueAtMs: number; readonly generation: number }
  | { readonly outcome: 'tooLate' | 'cancelled' | 'unknown' };

export type Delays = {
  /**
   * Resolves once the entry and its task exist. After an error it may be scheduled; the same id again replaces it.
   * @throws MALFORMED_MESSAGE, MESSAGE_TOO_LARGE, STORE_UNAVAILABLE, SERVICE_UNAVAILABLE
   */
  schedule(draft: DelayedDraft, schedule: Schedule): Promise<Delayed>;
  /** Of an id that nobody knows yet, too: what was published for it before is dropped when it comes. */
  cancel(id: string): Promise<Cancelled>;
  reschedule(id: string, at: number | Date | string): Promise<Rescheduled>;
  get(id: string): Promise<Delayed | undefined>;
  /** The pending ones, the earliest due first; read page by page. */
  list(state?: DelayState): AsyncIterable<Delayed>;
};

/** Delays under ids, for publishers that reach Firestore and Cloud Tasks themselves. */
export function createDelays(parts: DelaysParts): Delays {
  const { ledger, payloads, scheduler, queues, calendar, system } = parts;
  const { storeTimeoutMs } = readOptions(delayOptions, parts.options);
  const ledgerParts: LedgerParts = { ...parts, storeTimeoutMs };
  const storeParts = { store: ledger, system, storeTimeoutMs };
  const look = (key: string) => within(system.clock, storeTimeoutMs, 'STORE_UNAVAILABLE', 'look', ledger.look(key));

  const settle = async (
    key: string,
    current: Stored<DelayRecord>,
    decide: (current: Stored<DelayRecord>) => ReturnType<typeof decideCancel>,
    keepMs: number | 'forever',
  ) => {
    for (let stored: Stored<DelayRecord> | undefined = current; stored; ) {
      const decision = decide(stored);
      if (decision.kind !== 'write') return { ...decision, before: decision.record };
      const put: Settled<DelayRecord> = await settledPut(storeParts, key, decision.record, stored.version, keepMs);
      if (put.kind === 'applied') return { kind: 'written' as const, record: decision.record, before: stored.record };
      stored = put.current;
    }
    return undefined;
  };

  return {
    async schedule(draft, schedule) {
      const id = schedule.id ?? system.randomId();
      const key = ledgerKeyOf(id);
      const { target, ...own } = draft;
      const message = withoutInstructions(stamped(own, system));
      const { nowMs, stored } = await look(key);
      const { dueAtMs, recurrence } = timesOf(schedule, nowMs, calendar);
      const seqRef = sequenceRefOf(message) ?? null;
      if (seqRef && recurrence)
        throw malformed(`${attribute.stream} is set, and a number of a stream comes once; the recurrence would repeat it`);
      const opId = system.randomId();
      const carried = await carry(payloads, message, [id, opId], keepMsUntil(dueAtMs, nowMs));
      const wanted = {
        id,
        dueAtMs,
        target: targetOf({ attributes: target === undefined ? {} : { [attribute.target]: target } }, parts),
        key: message.attributes[attribute.key] ?? '',
        seqRef,
        instr: { publishTimeMs: nowMs, messageId: '', key: opId },
        queue: queueOf(id, queues),
        shard: shardOf(id),
        recurrence,
        carried,
        incarnation: system.randomId(),
        opId,
      };
      const scheduled = await putSchedule(ledgerParts, wanted, stored);
      await armScheduled(ledgerParts, scheduled);
      return delayedOf(scheduled.record);
    },

    async cancel(id) {
      const key = ledgerKeyOf(id);
      const opId = system.randomId();
      const looked = await look(key);
      let stored: Stored<DelayRecord> | undefined = looked.stored;
      if (!stored) {
        const record = neverScheduled(id, looked.nowMs, opId, system.randomId());
        const put: Settled<DelayRecord> = await settledPut(storeParts, key, record, 'absent', endedKeepMs);
        if (put.kind === 'applied') return { outcome: 'cancelled' };
        stored = put.current;
      }
      const end = stored && (await settle(key, stored, (current) => decideCancel(current, opId), endedKeepMs));
      if (!end)
        throw new ToolkitError('STORE_UNAVAILABLE', `the entry of the delay id ${JSON.stringify(id.slice(0, 100))} was deleted meanwhile`);
      if (end.kind === 'tooLate') return { outcome: 'tooLate' };
      // Its number first: a task that is left finds that it is owed.
      await publishOwed(parts, end.record.owed);
      if (end.kind === 'written') await afterwards(ledgerParts, { ...end.record, owed: [] }, end.before);
      return { outcome: 'cancelled' };
    },

    async reschedule(id, at) {
      const key = ledgerKeyOf(id);
      const opId = system.randomId();
      const { nowMs, stored } = await look(key);
      const dueAtMs = instantOf({ at }, nowMs);
      if (!stored) return { outcome: 'unknown' };
      if (stored.record.payload) await keepLonger(payloads, stored.record.payload, keepMsUntil(dueAtMs, nowMs));
      const end = await settle(key, stored, (current) => decideReschedule(current, dueAtMs, opId), 'forever');
      if (!end) return { outcome: 'unknown' };
      if (end.kind !== 'written') return { outcome: end.kind };
      await armRecord(scheduler, end.record);
      await afterwards(ledgerParts, end.record, end.before);
      return { outcome: 'rescheduled', dueAtMs, generation: end.record.generation };
    },

    async get(id) {
      const stored = await settledGet(storeParts, ledgerKeyOf(id));
      return stored && delayedOf(stored.record);
    },

    async *list(state = 'pending') {
      for await (const page of pagesOf(ledgerParts, state)) for (const { stored } of page) yield delayedOf(stored.record);
    },
  };
}

function timesOf(schedule: Schedule, nowMs: number, calendar: Calendar): { dueAtMs: number; recurrence: Recurrence | null } {
  if (!('everyMs' in schedule) && !('cron' in schedule)) return { dueAtMs: instantOf(schedule, nowMs), recurrence: null };
  const recurrence: Recurrence =
    'everyMs' in schedule ? { everyMs: schedule.everyMs } : { cron: schedule.cron, timeZone: schedule.timeZone ?? 'UTC' };
  const first = calendar.next(recurrence, nowMs, nowMs);
  if (first === undefined) throw malformed(`the recurrence ${JSON.stringify(recurrence)} never comes`);
  const dueAtMs = 'everyMs' in schedule && schedule.at !== undefined ? instantOf({ at: schedule.at }, nowMs) : first;
  return { dueAtMs, recurrence };
}

const delayedOf = ({ id, state, generation, dueAtMs, target, key, recurrence, messageId }: DelayRecord): Delayed => ({
  id,
  state,
  generation,
  dueAtMs,
  target,
  key,
  recurrence,
  messageId,
});
