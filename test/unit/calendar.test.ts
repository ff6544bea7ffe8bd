import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { calendar } from '../../src/shared/adapters/calendar.ts';

/** The next occurrences of a pattern after an instant, which all are absolute. */
function occurrences(cron: string, timeZone: string, after: string, count: number): string[] {
  const found: string[] = [];
  let afterMs = Date.parse(after);
  while (found.length < count) {
    const nextMs = calendar.next({ cron, timeZone }, afterMs, 0);
    if (nextMs === undefined) break;
    found.push(new Date(nextMs).toISOString().replace('.000Z', 'Z'));
    afterMs = nextMs;
  }
  return found;
}

const machines: [zone: string, now: string, hourOf1970: number][] = [
  ['UTC', '2026-01-01T00:00:00Z', 0],
  ['Pacific/Auckland', '1999-12-31T23:59:59Z', 12],
  ['America/Los_Angeles', '2100-07-01T00:00:00Z', 16],
];

describe.each(machines)('a pattern, on a machine in %s whose clock says %s', (zone, now, hourOf1970) => {
  beforeEach(() => {
    vi.stubEnv('TZ', zone);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse(now) });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllEnvs();
  });

  test('the machine is as said', () => {
    expect([Date.now(), new Date(0).getHours()]).toEqual([Date.parse(now), hourOf1970]);
  });

  test.each<[what: string, cron: string, timeZone: string, after: string, next: string[]]>([
    ['each minute', '* * * * *', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-01T00:01:00Z', '2026-01-01T00:02:00Z']],
    ['six fields', '*/20 * * * * *', 'UTC', '2026-01-01T00:00:30Z', ['2026-01-01T00:00:40Z', '2026-01-01T00:01:00Z']],
    ['spaces around', ' 0  9 *\t* * ', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-01T09:00:00Z']],
    ['not at the instant itself', '0 9 * * *', 'UTC', '2026-01-01T09:00:00Z', ['2026-01-02T09:00:00Z']],
    ['a millisecond before', '0 9 * * *', 'UTC', '2026-01-01T08:59:59.999Z', ['2026-01-01T09:00:00Z']],
    ['a millisecond after', '0 9 * * *', 'UTC', '2026-01-01T09:00:00.001Z', ['2026-01-02T09:00:00Z']],
    ['a second, between seconds', '* * * * * *', 'UTC', '2026-01-01T09:00:00.999Z', ['2026-01-01T09:00:01Z']],
    ['before 1970', '0 9 * * *', 'UTC', '1969-07-20T20:17:00Z', ['1969-07-21T09:00:00Z']],
    ['working hours', '30 9 * * MON-FRI', 'Europe/Berlin', '2026-01-02T08:30:00Z', ['2026-01-05T08:30:00Z', '2026-01-06T08:30:00Z']],
    ['sunday by 7', '0 0 * * 7', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-04T00:00:00Z']],
    ['sunday by 0', '0 0 * * 0', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-04T00:00:00Z']],
    ['a day or a weekday', '0 0 3 * 0', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-03T00:00:00Z', '2026-01-04T00:00:00Z']],
    ['a day and a weekday', '0 0 13 * +FRI', 'UTC', '2026-01-01T00:00:00Z', ['2026-02-13T00:00:00Z', '2026-03-13T00:00:00Z']],
    ['half an hour off', '0 9 * * *', 'Asia/Kolkata', '2026-01-01T00:00:00Z', ['2026-01-01T03:30:00Z']],
    ['the 31st', '0 0 31 * *', 'UTC', '2026-01-31T00:00:00Z', ['2026-03-31T00:00:00Z', '2026-05-31T00:00:00Z', '2026-07-31T00:00:00Z']],
    ['the last day', '0 0 L * *', 'UTC', '2026-01-31T00:00:00Z', ['2026-02-28T00:00:00Z', '2026-03-31T00:00:00Z', '2026-04-30T00:00:00Z']],
    ['the last day of a leap year', '0 0 L 2 *', 'UTC', '2028-01-01T00:00:00Z', ['2028-02-29T00:00:00Z', '2029-02-28T00:00:00Z']],
    ['month end in a zone', '59 23 31 12 *', 'Pacific/Auckland', '2026-01-01T00:00:00Z', ['2026-12-31T10:59:00Z']],
    ['the second tuesday', '0 0 * * TUE#2', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-13T00:00:00Z', '2026-02-10T00:00:00Z']],
    ['the last friday', '0 0 * * 5L', 'UTC', '2026-01-01T00:00:00Z', ['2026-01-30T00:00:00Z', '2026-02-27T00:00:00Z']],
    ['the working day before', '0 0 15W * *', 'UTC', '2026-08-01T00:00:00Z', ['2026-08-14T00:00:00Z']],
    ['the working day after', '0 0 15W * *', 'UTC', '2026-11-01T00:00:00Z', ['2026-11-16T00:00:00Z']],
    ['a leap day', '0 0 29 2 *', 'UTC', '2026-01-01T00:00:00Z', ['2028-02-29T00:00:00Z', '2032-02-29T00:00:00Z']],
    ['a leap day over 2100', '0 0 29 2 *', 'UTC', '2096-02-29T00:00:00Z', ['2104-02-29T00:00:00Z']],
    ['a leap day in a zone', '0 0 29 2 *', 'Europe/Berlin', '2026-01-01T00:00:00Z', ['2028-02-28T23:00:00Z']],
    ['until 2999', '0 * * * *', 'UTC', '2999-12-31T22:00:00Z', ['2999-12-31T23:00:00Z', 'none']],
    ['30 February', '0 0 30 2 *', 'Europe/Berlin', '2026-01-01T00:00:00Z', ['none']],
    ['30 February by the second', '* * * 30 2 *', 'Europe/Berlin', '2026-01-01T00:00:00Z', ['none']],
    ['31st of short months', '0 0 31 2,4,6,9,11 *', 'UTC', '2026-01-01T00:00:00Z', ['none']],
    ['a fifth monday on the 1st', '0 0 1 * +MON#5', 'UTC', '2026-01-01T00:00:00Z', ['none']],
  ])('%s: %s in %s after %s', (_, cron, timeZone, after, next) => {
    const ends = next.at(-1) === 'none';
    expect(occurrences(cron, timeZone, after, next.length)).toEqual(ends ? next.slice(0, -1) : next);
  });

  /** Berlin leaves out 2:00 to 3:00 on 29 March 2026 (1:00 UTC), and repeats it on 25 October (1:00 UTC). */
  test.each<[what: string, cron: string, after: string, next: string[]]>([
    [
      'daily, left out: it comes when the clock has jumped',
      '30 2 * * *',
      '2026-03-27T12:00:00Z',
      ['2026-03-28T01:30:00Z', '2026-03-29T01:00:00Z', '2026-03-30T00:30:00Z'],
    ],
    [
      'daily, repeated: once',
      '30 2 * * *',
      '2026-10-23T12:00:00Z',
      ['2026-10-24T00:30:00Z', '2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z'],
    ],
    ['between the two', '30 2 * * *', '2026-10-25T00:30:00.001Z', ['2026-10-26T01:30:00Z']],
    [
      'twice a day, left out',
      '30 2,14 * * *',
      '2026-03-28T12:00:00Z',
      ['2026-03-28T13:30:00Z', '2026-03-29T01:00:00Z', '2026-03-29T12:30:00Z'],
    ],
    ['twice a day, repeated', '30 2,14 * * *', '2026-10-24T13:00:00Z', ['2026-10-25T00:30:00Z', '2026-10-25T13:30:00Z']],
    [
      'hours in a range, left out',
      '0 1-3 * * *',
      '2026-03-28T12:00:00Z',
      ['2026-03-29T00:00:00Z', '2026-03-29T01:00:00Z', '2026-03-29T23:00:00Z'],
    ],
    [
      'each half hour, left out',
      '*/30 * * * *',
      '2026-03-29T00:00:00Z',
      ['2026-03-29T00:30:00Z', '2026-03-29T01:00:00Z', '2026-03-29T01:30:00Z'],
    ],
    [
      'each half hour, repeated',
      '*/30 * * * *',
      '2026-10-25T00:00:00Z',
      ['2026-10-25T00:30:00Z', '2026-10-25T01:00:00Z', '2026-10-25T01:30:00Z', '2026-10-25T02:00:00Z'],
    ],
    ['each minute of an hour that is left out', '* 2 * * *', '2026-03-28T01:59:00Z', ['2026-03-30T00:00:00Z']],
  ])('where clocks change: %s: %s after %s', (_, cron, after, next) => {
    expect(occurrences(cron, 'Europe/Berlin', after, next.length)).toEqual(next);
  });
});

describe('an interval', () => {
  const day = 86_400_000;
  test.each<[everyMs: number, anchorMs: number, afterMs: number, next: number]>([
    [1_000, 0, 0, 1_000],
    [1_000, 0, 999, 1_000],
    [1_000, 0, 1_000, 2_000],
    [1_000, 250, 249, 250],
    [1_000, 250, 250, 1_250],
    [1_000, 250, 1_249, 1_250],
    [1_000, 250, 1_250, 2_250],
    [1_000, 5_000, 0, 5_000],
    [1_000, 5_000, 4_999, 5_000],
    [1_001, 0, 1_000, 1_001],
    [1_001, -2_002, -500, 0],
    [7 * day, 1_767_225_600_123, 1_767_830_400_122, 1_767_830_400_123],
    [7 * day, 1_767_225_600_123, 1_767_830_400_123, 1_768_435_200_123],
    [31_622_400_000, 0, 31_622_400_000, 63_244_800_000],
    [1_000, 1, 8_640_000_000_000_000, 8_640_000_000_000_001],
  ])('of %i ms from %i on has, after %i, the occurrence %i', (everyMs, anchorMs, afterMs, next) => {
    expect(calendar.next({ everyMs }, afterMs, anchorMs)).toBe(next);
  });

  test.each([0, 999, -1_000, 1_000.5, 31_622_400_001, Number.NaN, Number.POSITIVE_INFINITY, '60000', null, undefined])(
    'of %s ms is refused',
    (everyMs) => {
      expect(() => calendar.next({ everyMs: everyMs as number }, 0, 0)).toThrow(
        expect.objectContaining({
          code: 'MALFORMED_MESSAGE',
          message: `everyMs is ${typeof everyMs === 'string' ? `"${everyMs}"` : everyMs}; it must be a whole number from 1000 to 31622400000`,
        }),
      );
    },
  );
});

describe('what cannot be read', () => {
  const refused = (cron: unknown, timeZone: unknown, message: string) =>
    expect(() => calendar.next({ cron: cron as string, timeZone: timeZone as string }, 0, 0)).toThrow(
      expect.objectContaining({ code: 'MALFORMED_MESSAGE', message }),
    );

  test.each([
    ['', '"" has 0 fields'],
    ['* * * *', '"* * * *" has 4 fields'],
    ['* * * * * * *', '"* * * * * * *" has 7 fields'],
    ['@daily', '"@daily" has 1 fields'],
    [undefined, 'undefined is no text'],
    [5, '5 is no text'],
  ])('a pattern of other than five or six fields: %s', (cron, told) => {
    refused(cron, 'UTC', `the cron pattern ${told}; it must have 5 or 6`);
  });

  test.each([
    '60 * * * *',
    '-1 * * * *',
    '60 * * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * 32 * *',
    '* * * 0 *',
    '* * * 13 *',
    '* * * * 8',
    '*/0 * * * *',
    '5/15 * * * *',
    '9-5 * * * *',
    '1.5 * * * *',
    'a * * * *',
    '* * * FOO *',
    '* * * * MON#6',
    '1 Jan 2026 10:00 UTC',
  ])('the pattern %s', (cron) => {
    const fields = 'minute 0-59, hour 0-23, day 1-31, month 1-12 or JAN-DEC and weekday 0-7 or SUN-SAT';
    const message = `the cron pattern "${cron}" cannot be read; its fields are ${fields}, with seconds 0-59 in front of them if there are six`;
    refused(cron, 'UTC', message);
  });

  test.each([
    ['Mars/Base', '"Mars/Base"'],
    ['', '""'],
    ['CEST', '"CEST"'],
    [undefined, 'undefined'],
    [60, '60'],
  ])('the zone %s', (timeZone, told) => {
    refused('0 0 * * *', timeZone, `the time zone is ${told}; it must be a name of the IANA database, as Europe/Berlin`);
  });

  test('its last values are read', () => {
    expect(occurrences('59 59 23 31 12 *', 'UTC', '2026-01-01T00:00:00Z', 1)).toEqual(['2026-12-31T23:59:59Z']);
    expect(occurrences('0 0 1 1 *', 'UTC', '2026-01-01T00:00:00Z', 1)).toEqual(['2027-01-01T00:00:00Z']);
  });
});
