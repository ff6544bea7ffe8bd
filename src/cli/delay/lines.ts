import { hopMs, type QueuePlan } from '../../shared/delay/decide.ts';
import type { Delayed } from '../../shared/delay/delays.ts';
import type { Repaired } from '../../shared/delay/repair.ts';
import type { DelayStatus } from '../../shared/delay/status.ts';
import type { Recurrence } from '../../shared/ports.ts';

const instant = (atMs: number): string => new Date(atMs).toISOString();
/** An id may hold what a terminal takes for a command. */
const quoted = (text: string): string => JSON.stringify(text);

const queueLines = (queues: DelayStatus['queues']): string[] => queues.map(({ queue, state }) => `queue ${queue}: ${state}`);

export function linesOfStatus({ queues, ledger, lateness }: DelayStatus): string[] {
  const { pending, releasing, fired, cancelled, overdue } = ledger;
  const { fromMs, count, p50Ms, p99Ms, highestMs } = lateness;
  const late = count === 0 ? '' : `, late at most ${atMost(p50Ms)} (p50), ${atMost(p99Ms)} (p99), ${atMost(highestMs)} (all)`;
  return [
    ...queueLines(queues),
    `ledger: ${pending} pending, ${releasing} releasing, ${fired} fired, ${cancelled} cancelled; ${overdue} overdue`,
    `since ${instant(fromMs)}: ${count} published${late}`,
  ];
}

const atMost = (boundMs: number | null): string => (boundMs !== null && Number.isFinite(boundMs) ? `${boundMs} ms` : 'more than a day');

export const linesOfRepair = ({ queues, checked, rearmed, overdue, failed }: Repaired): string[] => [
  ...queueLines(queues),
  `looked at ${checked}, gave ${rearmed} a task again, ${overdue} overdue though they have one, ${failed} failed`,
];

export function linesOfPlan({ perSecond, needed, queues, isEnough, ...plan }: QueuePlan): string[] {
  const hopDays = hopMs / 86_400_000;
  return [
    `${perSecond} messages a second need ${needed} ${needed === 1 ? 'queue' : 'queues'}`,
    `of ${queues} each dispatches ${round(plan.perQueuePerSecond)} a second, ${plan.mostPerQueuePerSecond} at most: ${isEnough ? 'enough' : 'too few'}`,
    `one more takes ${round(plan.shareOfAnother * 100)} % of what is scheduled from then on, and moves nothing that is; App Engine must know it before the function does`,
    `App Engine: ${plan.requestsPerDay} requests a day, none with DELAY_MODE=handler-less; one more for each ${hopDays} days of a wait beyond ${hopDays}`,
  ];
}

const round = (value: number): number => Math.round(value * 100) / 100;

export function lineOfDelayed({ id, state, dueAtMs, generation, target, messageId, recurrence }: Delayed): string {
  return [
    `${quoted(id)}: ${state}`,
    `due ${instant(dueAtMs)}`,
    `generation ${generation}`,
    target !== '' && `to ${target}`,
    recurrence && repeated(recurrence),
    messageId !== null && `last published as ${messageId}`,
  ]
    .filter((part) => part)
    .join(', ');
}

const repeated = (recurrence: Recurrence): string =>
  'everyMs' in recurrence ? `every ${recurrence.everyMs} ms` : `by cron ${quoted(recurrence.cron)} in ${recurrence.timeZone}`;

export const lineOfRescheduled = (id: string, dueAtMs: number, generation: number): string =>
  `${quoted(id)}: rescheduled, due ${instant(dueAtMs)}, generation ${generation}`;

/** What a command that changed nothing says about its id. */
export const refusals = {
  unknown: (id: string) => `refused: the ledger has no entry of the delay id ${quoted(id)}`,
  cancelled: (id: string) => `refused: ${quoted(id)} is cancelled`,
  tooLate: (id: string) => `refused: ${quoted(id)} was published, or will be`,
} as const;

export const lineOfCancelled = (id: string, wasKnown: boolean): string =>
  `${quoted(id)}: cancelled${wasKnown ? '' : '; nobody knew this id, and what was published under it before now is dropped when it comes'}`;
