import { malformed } from '../errors.ts';
import { attribute, type Message } from '../message.ts';
import { hash } from '../names.ts';

/** When a message is due, and the words that said so: a publisher's retry repeats the words, though not the publish time. */
export type Due = { readonly dueAtMs: number; readonly instruction: string };

/** A task lives 31 days, and a paused queue eats into them; a longer wait is made of hops (`docs/facts.md` C.4). */
export const hopMs = 25 * 86_400_000;

/** The last instant of the year 9999, the latest that RFC 3339 can write. */
const latestMs = 253_402_300_799_999;

/**
 * The due time of a message; `undefined` when it has none.
 * @throws MALFORMED_MESSAGE for a time that is no RFC 3339 instant, a delay that is no whole number of ms from 0, or both
 */
export function dueOf({ attributes, publishTimeMs }: Pick<Message, 'attributes' | 'publishTimeMs'>): Due | undefined {
  const deliverAt = attributes[attribute.deliverAt];
  const delayMs = attributes[attribute.delayMs];
  if (deliverAt !== undefined && delayMs !== undefined) throw malformed(`${attribute.deliverAt} and ${attribute.delayMs} are both set`);
  if (deliverAt !== undefined) return { dueAtMs: instantMs(deliverAt), instruction: `at ${deliverAt}` };
  if (delayMs === undefined) return undefined;
  if (!/^\d{1,15}$/.test(delayMs)) throw malformed(`${attribute.delayMs} is ${shown(delayMs)}; it must be a whole number of ms from 0`);
  if (publishTimeMs === undefined) throw malformed(`${attribute.delayMs} counts from the publish time, which is missing`);
  return { dueAtMs: checked(publishTimeMs + Number(delayMs), delayMs), instruction: `after ${delayMs}` };
}

const rfc3339 = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}:\d{2}(?:\.(\d{1,9}))?(?:Z|[+-]\d{2}:\d{2})$/;

/** Rounded up to whole ms, so that nothing is early. */
function instantMs(text: string): number {
  const [, day, fraction = ''] = rfc3339.exec(text) ?? [];
  const wholeMs = day === undefined ? Number.NaN : Date.parse(text.replace(/(\.\d{3})\d+/, '$1'));
  // V8 reads 30 February as 2 March.
  if (Number.isNaN(wholeMs) || !new Date(`${day}T00:00:00Z`).toISOString().startsWith(day ?? ' ')) {
    throw malformed(`${attribute.deliverAt} is ${shown(text)}; it must be an RFC 3339 instant such as 2026-01-31T09:30:00Z`);
  }
  return checked(wholeMs + (/[1-9]/.test(fraction.slice(3)) ? 1 : 0), text);
}

function checked(dueAtMs: number, text: string): number {
  if (dueAtMs > latestMs) throw malformed(`the due time ${shown(text)} lies after the year 9999`);
  return dueAtMs;
}

const shown = (text: string): string => JSON.stringify(text.slice(0, 40));

export type DelayPlan =
  | { readonly kind: 'now' }
  | { readonly kind: 'task'; readonly dueAtMs: number; readonly scheduledForMs: number; readonly instruction: string };

/**
 * Due at or before the publish time, which the service set: published now. Later: a task, and the queue's clock decides. No
 * clock of a worker can make a message early.
 * @param receivedAtMs only where there is no publish time, to know how long the first hop may be
 */
export function planDelay(message: Pick<Message, 'attributes' | 'publishTimeMs'>, receivedAtMs: number): DelayPlan {
  const due = dueOf(message);
  if (!due || (message.publishTimeMs !== undefined && due.dueAtMs <= message.publishTimeMs)) return { kind: 'now' };
  const fromMs = message.publishTimeMs ?? receivedAtMs;
  return { kind: 'task', ...due, scheduledForMs: nextHop(fromMs, due.dueAtMs) };
}

/** When the next task of a chain fires; computed from the one before and never from a clock. */
export const nextHop = (scheduledForMs: number, dueAtMs: number): number => Math.min(dueAtMs, scheduledForMs + hopMs);

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
