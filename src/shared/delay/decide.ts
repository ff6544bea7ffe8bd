import type { Message } from '../message.ts';
import { hash } from '../names.ts';
import type { Stored } from '../ports.ts';
import { dueOf } from './due.ts';
import { cancelled, claimed, created, type DelayRecord, type Instruction, readable, replaced, rescheduled, type Wanted } from './ledger.ts';
import type { LedgerRef } from './task-body.ts';

/** A task lives 31 days, and a paused queue eats into them; a longer wait is made of hops (`docs/facts.md` C.4). */
export const hopMs = 25 * 86_400_000;

export type DelayPlan =
  | { readonly kind: 'now' }
  /** Too soon for a task: it waits in the function. */
  | { readonly kind: 'hold'; readonly forMs: number }
  | { readonly kind: 'task'; readonly dueAtMs: number; readonly scheduledForMs: number; readonly instruction: string };

export type PlanRules = {
  /** After which a message without a due time is due; 0: at once. */
  readonly defaultMs: number;
  /** A message that is due so soon after its publish time waits in the function. */
  readonly holdMs: number;
  /** Whether the ledger is to know it: then there is a task for it, however soon. */
  readonly isLedgered: boolean;
};

/**
 * Due at or before the publish time, which the service set: published now. Later: a task, and the queue's clock decides, or a wait
 * in the function, counted from its receipt. No clock of a worker can make a message early.
 * @param receivedAtMs only where there is no publish time, to know how long the first hop may be
 */
export function planDelay(
  message: Pick<Message, 'attributes' | 'publishTimeMs'>,
  receivedAtMs: number,
  { defaultMs, holdMs, isLedgered }: PlanRules,
): DelayPlan {
  const fromMs = message.publishTimeMs ?? receivedAtMs;
  const due = dueOf(message, defaultMs);
  if (isLedgered) {
    const { dueAtMs, instruction } = due ?? { dueAtMs: fromMs, instruction: 'now' };
    return { kind: 'task', dueAtMs, instruction, scheduledForMs: nextHop(fromMs, dueAtMs) };
  }
  if (!due || (message.publishTimeMs !== undefined && due.dueAtMs <= message.publishTimeMs)) return { kind: 'now' };
  const forMs = due.dueAtMs - fromMs;
  if (message.publishTimeMs !== undefined && forMs <= holdMs) return { kind: 'hold', forMs };
  return { kind: 'task', ...due, scheduledForMs: nextHop(fromMs, due.dueAtMs) };
}

/** When the next task of a chain fires; computed from the one before and never from a clock. */
export const nextHop = (scheduledForMs: number, dueAtMs: number): number => Math.min(dueAtMs, scheduledForMs + hopMs);

/** How many tasks a wait is made of. */
export const hopsOf = (fromMs: number, dueAtMs: number): number => Math.max(1, Math.ceil((dueAtMs - fromMs) / hopMs));

export type TaskIdentity = {
  readonly source: string;
  readonly key: string;
  readonly instruction: string;
  readonly delayCount: string;
  readonly hop: number;
};

/** A redelivery or a publisher's retry maps to the task there is; a message delayed again after its release to a new one. */
export const taskId = ({ source, key, instruction, delayCount, hop }: TaskIdentity): string =>
  hash(JSON.stringify([source, key, instruction, delayCount, hop]));

/** Of an entry of the ledger, each generation and hop has a name of its own. */
export const ledgerTaskId = ({ incarnation, generation }: Omit<LedgerRef, 'id'>, hop: number): string =>
  hash(JSON.stringify([incarnation, generation, hop]));

/** A redelivery, a publisher's retry and a second delay of the same message, told apart as their tasks are. */
export const instructionKey = (key: string, instruction: string, delayCount: string): string =>
  hash(JSON.stringify([key, instruction, delayCount]));

/** Where a task goes: the queue with the highest digest. A queue that is added takes over its share, and moves no other. */
export function queueOf(identity: string, queues: readonly string[]): string {
  if (queues.length === 1) return queues[0] ?? '';
  const ranked = queues.map((queue) => [hash(`${queue} ${identity}`), queue] as const).sort(([a], [b]) => (a < b ? 1 : -1));
  return ranked[0]?.[1] ?? '';
}

/** What a queue dispatches a second at most (`docs/facts.md` C.5). */
const queuePerSecond = 500;
/** Digests spread unevenly, and a burst needs room. */
const usedShare = 0.8;

/** How many queues dispatch so many messages a second. */
export const queuesFor = (perSecond: number): number => Math.max(1, Math.ceil(perSecond / (queuePerSecond * usedShare)));

export type QueuePlan = {
  readonly perSecond: number;
  readonly needed: number;
  readonly queues: number;
  readonly isEnough: boolean;
  /** What a queue dispatches on average, and at most. */
  readonly perQueuePerSecond: number;
  readonly mostPerQueuePerSecond: number;
  /** Of what is scheduled from then on, the share that a queue takes which is added; what is scheduled already stays where it is. */
  readonly shareOfAnother: number;
  /** One for each dispatch; a wait beyond `hopMs` takes one more for each. */
  readonly requestsPerDay: number;
};

/** What so many messages a second ask of queues and of App Engine. @param queues by default as many as are needed */
export function planQueues(perSecond: number, queues = queuesFor(perSecond)): QueuePlan {
  const needed = queuesFor(perSecond);
  return {
    ...{ perSecond, needed, queues, isEnough: queues >= needed, perQueuePerSecond: perSecond / queues },
    ...{ mostPerQueuePerSecond: queuePerSecond, shareOfAnother: 1 / (queues + 1), requestsPerDay: perSecond * 86_400 },
  };
}

export type ScheduleDecision =
  | { readonly kind: 'write'; readonly record: DelayRecord }
  /** This very instruction was taken before. */
  | { readonly kind: 'same'; readonly record: DelayRecord }
  /** A later one has come before it. */
  | { readonly kind: 'superseded'; readonly record: DelayRecord };

/** What an instruction does to what is stored under its id: of two the later one counts, in whatever order they are processed. */
export function decideSchedule(current: Stored<DelayRecord> | undefined, wanted: Wanted): ScheduleDecision {
  if (!current) return { kind: 'write', record: created(wanted) };
  const record = readable(current);
  const { instr } = wanted;
  if (instr.key === record.instr.key) return { kind: 'same', record };
  // A call has read what it replaces, so it is later, though the clock may show the same ms.
  if (instr.messageId === '') {
    const publishTimeMs = Math.max(instr.publishTimeMs, record.instr.publishTimeMs);
    return { kind: 'write', record: replaced(record, { ...wanted, instr: { ...instr, publishTimeMs } }) };
  }
  if (record.seen.includes(instr.key) || !isLater(instr, record.instr)) return { kind: 'superseded', record };
  return { kind: 'write', record: replaced(record, wanted) };
}

/** By the service's clock; two messages of one instant by their ids, which are decimal numbers. */
function isLater(a: Instruction, b: Instruction): boolean {
  if (a.publishTimeMs !== b.publishTimeMs) return a.publishTimeMs > b.publishTimeMs;
  return a.messageId.length === b.messageId.length ? a.messageId > b.messageId : a.messageId.length > b.messageId.length;
}

export type CallDecision =
  | { readonly kind: 'write'; readonly record: DelayRecord }
  | { readonly kind: 'tooLate' | 'cancelled'; readonly record: DelayRecord };

/** `tooLate`: it was published, or will be; also where its run died, which may have published it. */
export function decideCancel(current: Stored<DelayRecord>, opId: string): CallDecision {
  const record = readable(current);
  if (record.state === 'cancelled') return { kind: 'cancelled', record };
  return record.state === 'pending' ? { kind: 'write', record: cancelled(record, current.nowMs, opId) } : { kind: 'tooLate', record };
}

export function decideReschedule(current: Stored<DelayRecord>, dueAtMs: number, opId: string): CallDecision {
  const record = readable(current);
  if (record.state === 'cancelled') return { kind: 'cancelled', record };
  return record.state === 'pending'
    ? { kind: 'write', record: rescheduled(record, dueAtMs, current.nowMs, opId) }
    : { kind: 'tooLate', record };
}

export type Dispatched = LedgerRef & { readonly hasMoreHops: boolean; readonly runId: string; readonly leaseMs: number };

export type ReleaseDecision =
  /** Somebody deleted the entry: nobody knows whether it was to be published. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'ended' | 'rearm' | 'hop'; readonly record: DelayRecord }
  | { readonly kind: 'busy'; readonly retryAfterMs: number }
  | { readonly kind: 'claim'; readonly record: DelayRecord };

/** What the dispatch of a task does, by the ledger (protocol 5.4). */
export function decideRelease(current: Stored<DelayRecord> | undefined, task: Dispatched): ReleaseDecision {
  if (!current || readable(current).incarnation !== task.incarnation) return { kind: 'missing' };
  const { record, nowMs, writtenAtMs } = current;
  if (record.state === 'fired' || record.state === 'cancelled' || record.generation < task.generation) return { kind: 'ended', record };
  // Who wrote the newer generation may have died before its task was made.
  if (record.generation > task.generation) return { kind: 'rearm', record };
  if (task.hasMoreHops) return { kind: 'hop', record };
  const leaseEndsMs = writtenAtMs + record.leaseMs;
  if (record.state === 'releasing' && nowMs < leaseEndsMs) return { kind: 'busy', retryAfterMs: leaseEndsMs - nowMs };
  return { kind: 'claim', record: claimed(record, task.runId, task.leaseMs) };
}

/** Whether a repair looks at an entry: it waits for its task, or its run is over, and nobody has written it for `graceMs`. */
export function awaitsTask({ record, nowMs, writtenAtMs }: Stored<DelayRecord>, graceMs: number): boolean {
  if (nowMs < writtenAtMs + graceMs) return false;
  return record.state === 'pending' || (record.state === 'releasing' && nowMs >= writtenAtMs + record.leaseMs);
}
