import { describe, expect, test } from 'vitest';
import { dueOf, instantOf, type When } from '../../src/shared/delay/due.ts';

const publishTimeMs = Date.UTC(2026, 0, 1);
const message = (attributes: Record<string, string>) => ({ attributes, publishTimeMs });
const malformed = (reason: string | RegExp = /./) =>
  expect.objectContaining({ code: 'MALFORMED_MESSAGE', message: typeof reason === 'string' ? reason : expect.stringMatching(reason) });

/** Instants of RFC 3339, and the ms that they are. */
const instants: [text: string, atMs: number][] = [
  ['2026-01-01T00:00:00Z', 1_767_225_600_000],
  ['2026-01-01T00:00:01.5Z', 1_767_225_601_500],
  ['2026-01-01T02:00:00+02:00', 1_767_225_600_000],
  ['2025-12-31T18:30:00-05:30', 1_767_225_600_000],
  ['2026-01-01T00:00:00.123Z', 1_767_225_600_123],
  ['2026-01-01T00:00:00.123000Z', 1_767_225_600_123],
  ['2026-01-01T00:00:00.123001Z', 1_767_225_600_124],
  ['2026-01-01T00:00:00.999999999Z', 1_767_225_601_000],
  ['2020-10-08T15:01:23Z', 1_602_169_283_000],
  ['2020-10-08T15:01:23+02:00', 1_602_162_083_000],
  ['2024-02-29T00:00:00Z', 1_709_164_800_000],
  ['1970-01-01T00:00:00Z', 0],
  ['9999-12-31T23:59:59.999Z', 253_402_300_799_999],
];

const noInstants: string[] = [
  '',
  'tomorrow',
  '60',
  '1h',
  'NaN',
  '1769853000',
  '2026-01-01',
  '2026-01-01T00:00:00',
  '2026-01-01T24:00:00Z',
  '2026-01-01T25:00:00Z',
  '2026-02-30T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-01-01T00:00:00.Z',
  '2026-01-01T00:00:00.1234567891Z',
  '10000-01-01T00:00:00Z',
  '+010000-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999001Z',
  '9999-12-31T23:59:59-00:01',
];

describe('dueOf', () => {
  test.each(instants)('ptk-deliver-at %s is that instant, and never an earlier ms', (text, dueAtMs) => {
    expect(dueOf(message({ 'ptk-deliver-at': text }))).toEqual({ dueAtMs, instruction: `at ${text}` });
  });

  test.each(noInstants)('ptk-deliver-at %j is no due time', (text) => {
    expect(() => dueOf(message({ 'ptk-deliver-at': text }))).toThrow(malformed());
  });

  test.each([
    ['0', 0],
    ['1', 1],
    ['60500', 60_500],
    ['007', 7],
    ['251635075199999', 251_635_075_199_999],
  ])('ptk-delay-ms %s counts from the publish time', (text, delayMs) => {
    expect(dueOf(message({ 'ptk-delay-ms': text }))).toEqual({ dueAtMs: 1_767_225_600_000 + delayMs, instruction: `after ${text}` });
  });

  test.each(['-5', '', '60.5', '1h', 'NaN', '1e3', ' 5', '5 ', '+5', '0x10', '251635075200000', '9999999999999999'])(
    'ptk-delay-ms %j is no delay',
    (text) => {
      expect(() => dueOf(message({ 'ptk-delay-ms': text }))).toThrow(malformed());
    },
  );

  test('both at once contradict each other', () => {
    expect(() => dueOf(message({ 'ptk-delay-ms': '1', 'ptk-deliver-at': '2026-01-01T00:00:00Z' }))).toThrow(
      malformed('ptk-deliver-at and ptk-delay-ms are both set'),
    );
  });

  test('a delay counts from the publish time and needs one', () => {
    expect(() => dueOf({ attributes: { 'ptk-delay-ms': '1' }, publishTimeMs: undefined })).toThrow(
      malformed(/publish time, which is missing/),
    );
    expect(() => dueOf({ attributes: {}, publishTimeMs: undefined }, 1)).toThrow(malformed(/a delay of 1 ms counts from the publish time/));
  });

  test('a message without a due time has none', () => {
    expect(dueOf(message({}))).toBeUndefined();
  });
});

describe('a default delay', () => {
  test.each<[string, Record<string, string>, number, ReturnType<typeof dueOf>]>([
    ['of 0 ms is none', {}, 0, undefined],
    ['of 1 ms is one', {}, 1, { dueAtMs: 1_767_225_600_001, instruction: 'after 1' }],
    ['of a year is one', {}, 31_536_000_000, { dueAtMs: 1_798_761_600_000, instruction: 'after 31536000000' }],
    [
      'gives way to an instant',
      { 'ptk-deliver-at': '2020-10-08T15:01:23Z' },
      5,
      { dueAtMs: 1_602_169_283_000, instruction: 'at 2020-10-08T15:01:23Z' },
    ],
    ['gives way to a delay', { 'ptk-delay-ms': '7' }, 5, { dueAtMs: 1_767_225_600_007, instruction: 'after 7' }],
    ['gives way to a delay of 0 ms', { 'ptk-delay-ms': '0' }, 5, { dueAtMs: 1_767_225_600_000, instruction: 'after 0' }],
  ])('%s', (_, attributes, defaultMs, due) => {
    expect(dueOf(message(attributes), defaultMs)).toEqual(due);
  });

  test('takes the place of no delay that cannot be read', () => {
    expect(() => dueOf(message({ 'ptk-delay-ms': '1h' }), 5)).toThrow(
      malformed('ptk-delay-ms is "1h"; it must be a whole number of ms from 0'),
    );
  });
});

const nowMs = 1_767_225_600_000;

describe('instantOf', () => {
  test.each(instants)('at %s is that instant, and never an earlier ms', (at, atMs) => {
    expect(instantOf({ at }, nowMs)).toBe(atMs);
  });

  test.each<[string, When, number]>([
    ['ms of the year 2001, the oldest that cannot be seconds by far', { at: 1e12 }, 1_000_000_000_000],
    ['ms of March 1973', { at: 100_000_000_000 }, 100_000_000_000],
    ['a fraction of a ms, rounded up', { at: 1_767_225_600_000.001 }, 1_767_225_600_001],
    ['the last ms of the year 9999', { at: 253_402_300_799_999 }, 253_402_300_799_999],
    ['a date', { at: new Date('2020-10-08T15:01:23Z') }, 1_602_169_283_000],
    ['a date of the year 9999', { at: new Date(253_402_300_799_999) }, 253_402_300_799_999],
    ['no time from now', { inMs: 0 }, 1_767_225_600_000],
    ['a ms from now', { inMs: 1 }, 1_767_225_600_001],
    ['60.5 ms from now, rounded up', { inMs: 60.5 }, 1_767_225_600_061],
    ['as long as the year 9999 lasts', { inMs: 251_635_075_199_999 }, 253_402_300_799_999],
  ])('takes %s', (_, when, atMs) => {
    expect(instantOf(when, nowMs)).toBe(atMs);
  });

  test.each(noInstants)('refuses at %j', (at) => {
    expect(() => instantOf({ at }, nowMs)).toThrow(malformed());
  });

  const at = (value: unknown) => ({ at: value }) as When;
  const inMs = (value: unknown) => ({ inMs: value }) as When;
  test.each<[string, When, RegExp]>([
    ['0', at(0), /^at is 0; .* most likely in seconds$/],
    ['60.5', at(60.5), /^at is 60.5; .* most likely in seconds$/],
    ['-5', at(-5), /most likely in seconds/],
    ['seconds of 2026 as if they were ms', at(1_767_225_600), /^at is 1767225600; .* most likely in seconds$/],
    ['the last ms before March 1973', at(99_999_999_999), /most likely in seconds/],
    ['NaN', at(Number.NaN), /^at is "NaN", which is no instant$/],
    ['what is endless', at(Number.POSITIVE_INFINITY), /after the year 9999/],
    ['what has no beginning', at(Number.NEGATIVE_INFINITY), /most likely in seconds/],
    ['an invalid date', at(new Date('nonsense')), /no instant/],
    ['a date of the year 10000', at(new Date(253_402_300_800_000)), /^the due time "253402300800000" lies after the year 9999$/],
    ['the first ms of the year 10000', at(253_402_300_800_000), /after the year 9999/],
    ['a fraction of a ms after the year 9999', at(253_402_300_799_999.5), /after the year 9999/],
    ['nothing', at(undefined), /no instant/],
    ['null', at(null), /no instant/],
    ['seconds with nanos', at({ seconds: 1_767_225_600, nanos: 0 }), /no instant/],
    ['a wait of -5 ms', inMs(-5), /^inMs is "-5"; it must be a number of ms from 0$/],
    ['a wait of nearly no ms before now', inMs(-0.001), /number of ms from 0/],
    ['a wait of NaN', inMs(Number.NaN), /number of ms from 0/],
    ['a wait without end', inMs(Number.POSITIVE_INFINITY), /after the year 9999/],
    ['a wait into the year 10000', inMs(251_635_075_200_000), /after the year 9999/],
    ['a wait in text', inMs('60'), /^inMs is "60"; it must be a number of ms from 0$/],
    ['a wait in words', inMs('1h'), /number of ms from 0/],
  ])('refuses %s', (_, when, reason) => {
    expect(() => instantOf(when, nowMs)).toThrow(malformed(reason));
  });
});
