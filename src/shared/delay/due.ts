import { malformed } from '../errors.ts';
import { attribute, type Message } from '../message.ts';

/** When a message is due, and the words that said so: a publisher's retry repeats the words, though not the publish time. */
export type Due = { readonly dueAtMs: number; readonly instruction: string };

/** When something is to happen: an instant (ms since 1970, a date or RFC 3339), or a while from now. */
export type When = { readonly at: number | Date | string } | { readonly inMs: number };

/** The last instant of the year 9999, the latest that RFC 3339 can write. */
const latestMs = 253_402_300_799_999;
/** Of March 1973: whoever gives less as ms means seconds. */
const fewestMs = 100_000_000_000;

/**
 * The due time of a message by its attributes, or else by `defaultMs`; `undefined` when it has none.
 * @throws MALFORMED_MESSAGE for a time that is no RFC 3339 instant, a delay that is no whole number of ms from 0, or both
 */
export function dueOf({ attributes, publishTimeMs }: Pick<Message, 'attributes' | 'publishTimeMs'>, defaultMs = 0): Due | undefined {
  const deliverAt = attributes[attribute.deliverAt];
  const delayMs = attributes[attribute.delayMs];
  if (deliverAt !== undefined && delayMs !== undefined) throw malformed(`${attribute.deliverAt} and ${attribute.delayMs} are both set`);
  if (deliverAt !== undefined) return { dueAtMs: instantMs(attribute.deliverAt, deliverAt), instruction: `at ${deliverAt}` };
  if (delayMs === undefined && defaultMs === 0) return undefined;
  if (delayMs !== undefined && !/^\d{1,15}$/.test(delayMs))
    throw malformed(`${attribute.delayMs} is ${shown(delayMs)}; it must be a whole number of ms from 0`);
  const waitMs = delayMs ?? String(defaultMs);
  if (publishTimeMs === undefined) throw malformed(`a delay of ${waitMs} ms counts from the publish time, which is missing`);
  return { dueAtMs: checked(publishTimeMs + Number(waitMs), waitMs), instruction: `after ${waitMs}` };
}

/**
 * The instant that a caller names, in whole ms, rounded up so that nothing is early.
 * @throws MALFORMED_MESSAGE for what is no instant, a number of seconds, a negative or endless wait, or a year after 9999
 */
export function instantOf(when: When, nowMs: number): number {
  if ('inMs' in when) {
    const { inMs } = when;
    if (!(typeof inMs === 'number' && inMs >= 0)) throw malformed(`inMs is ${shown(String(inMs))}; it must be a number of ms from 0`);
    return checked(Math.ceil(nowMs + inMs), `${inMs} ms from now`);
  }
  const { at } = when;
  if (typeof at === 'string') return instantMs('at', at);
  const atMs = at instanceof Date ? at.getTime() : at;
  if (typeof atMs !== 'number' || Number.isNaN(atMs)) throw malformed(`at is ${shown(String(at))}, which is no instant`);
  if (atMs < fewestMs)
    throw malformed(`at is ${atMs}; it must be an instant in ms since 1970, and an instant before March 1973 is most likely in seconds`);
  return checked(Math.ceil(atMs), String(atMs));
}

const rfc3339 = /^(\d{4}-\d{2}-\d{2})T(?:[01]\d|2[0-3]):\d{2}:\d{2}(?:\.(\d{1,9}))?(?:Z|[+-]\d{2}:\d{2})$/;

/** Rounded up to whole ms. */
function instantMs(what: string, text: string): number {
  const [, day, fraction = ''] = rfc3339.exec(text) ?? [];
  const wholeMs = day === undefined ? Number.NaN : Date.parse(text.replace(/(\.\d{3})\d+/, '$1'));
  // V8 reads 30 February as 2 March.
  if (Number.isNaN(wholeMs) || !new Date(`${day}T00:00:00Z`).toISOString().startsWith(day ?? ' ')) {
    throw malformed(`${what} is ${shown(text)}; it must be an RFC 3339 instant such as 2026-01-31T09:30:00Z`);
  }
  return checked(wholeMs + (/[1-9]/.test(fraction.slice(3)) ? 1 : 0), text);
}

function checked(dueAtMs: number, text: string): number {
  if (dueAtMs > latestMs) throw malformed(`the due time ${shown(text)} lies after the year 9999`);
  return dueAtMs;
}

const shown = (text: string): string => JSON.stringify(text.slice(0, 40));
