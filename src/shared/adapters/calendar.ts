import { Cron } from 'croner';
import { malformed, ToolkitError } from '../errors.ts';
import type { Calendar } from '../ports.ts';

const shortestMs = 1_000;
const longestMs = 366 * 86_400_000;

const fields =
  'minute 0-59, hour 0-23, day 1-31, month 1-12 or JAN-DEC and weekday 0-7 or SUN-SAT, with seconds 0-59 in front of them if there are six';

/**
 * Intervals, and cron patterns of five fields, or six with seconds. Beside `*`, lists, ranges and steps a pattern may have `L` (the last
 * day, or the last such weekday), `W` (the nearest working day) and `#` (the nth weekday). A day and a weekday together mean either, with
 * `+` before the weekday both.
 *
 * Where clocks change, a pattern with a `*` or step in its seconds, minutes or hours goes by the time that passes: it leaves out what the
 * clock leaves out, and comes twice where it repeats. Any other keeps to the days: what the clock leaves out comes when it has jumped, and
 * what it repeats comes the first time. Nothing comes after the year 2999.
 */
export const calendar: Calendar = {
  next(recurrence, afterMs, anchorMs) {
    if ('everyMs' in recurrence) return nextOf(checkedInterval(recurrence.everyMs), afterMs, anchorMs);
    const cron = parsed(recurrence.cron, checkedZone(recurrence.timeZone));
    return cron.nextRun(new Date(afterMs))?.getTime();
  },
};

/** The anchor is the first; none comes before it. */
const nextOf = (everyMs: number, afterMs: number, anchorMs: number): number =>
  afterMs < anchorMs ? anchorMs : afterMs - ((afterMs - anchorMs) % everyMs) + everyMs;

const shown = (value: unknown): string => (typeof value === 'string' ? JSON.stringify(value) : String(value));

function checkedInterval(everyMs: unknown): number {
  if (typeof everyMs === 'number' && Number.isInteger(everyMs) && everyMs >= shortestMs && everyMs <= longestMs) return everyMs;
  throw malformed(`everyMs is ${shown(everyMs)}; it must be a whole number from ${shortestMs} to ${longestMs}`);
}

/** Checked here, because no name at all would mean the machine's zone. */
function checkedZone(timeZone: unknown): string {
  try {
    if (typeof timeZone === 'string') return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone;
  } catch {}
  throw malformed(`the time zone is ${shown(timeZone)}; it must be a name of the IANA database, as Europe/Berlin`);
}

function parsed(pattern: unknown, timezone: string): Cron {
  const given = shown(pattern);
  const count = typeof pattern === 'string' ? (pattern.match(/\S+/g)?.length ?? 0) : undefined;
  if (count !== 5 && count !== 6) {
    const has = count === undefined ? 'is no text' : `has ${count} fields`;
    throw malformed(`the cron pattern ${given} ${has}; it must have 5 or 6`);
  }
  try {
    // The package would read a text with a colon as a date.
    if (String(pattern).includes(':')) throw new TypeError('a pattern has no colon');
    return new Cron(String(pattern), { timezone, fixedTimeRule: 'no-wildcard' });
  } catch (error) {
    // Its own texts count days and months from 0.
    throw new ToolkitError('MALFORMED_MESSAGE', `the cron pattern ${given} cannot be read; its fields are ${fields}`, error);
  }
}
