import { describe, expect, test } from 'vitest';
import {
  type Cursor,
  failed,
  freshCursor,
  inEpoch,
  keptFor,
  moved,
  released,
  replayedFrom,
  skippedNext,
  stopped,
} from '../../src/shared/fifo/cursor.ts';
import { type Arrival, arrivalOf, decideNewEpoch, decideSequence, earlyRetryMs, type StartAt } from '../../src/shared/fifo/decide.ts';
import { testMessage } from '../../src/testing/doubles.ts';

const cursor = (changes: Partial<Cursor> = {}): Cursor => ({
  ...freshCursor(100, 1),
  rev: 9,
  last: 5,
  started: 5,
  leaseMs: 500,
  ...changes,
});
const stored = (changes: Partial<Cursor> = {}, ageMs = 0) => ({
  record: cursor(changes),
  version: 'v',
  writtenAtMs: 1_000,
  nowMs: 1_000 + ageMs,
});
const at = (sequence: number, changes: Partial<Arrival> = {}): Arrival => ({
  ...{ epoch: 100, sequence, key: 'k', originMs: 50, isTombstone: false },
  ...changes,
});
const run = (by: number) => ({ runId: 'mine', leaseMs: 700, by });
const blocked = { seq: 6, reason: 'attempts', sinceMs: 7 } as const;
const recent = [
  { seq: 4, key: 'k', originMs: 40 },
  { seq: 5, key: 'other', originMs: 60 },
];
const reused = { kind: 'lost', reason: 'sequenceReused' };

describe('decideSequence', () => {
  test('without a cursor number 1 is the head and fixes the epoch', () => {
    expect(decideSequence(undefined, at(1), run(1), 1)).toEqual({
      kind: 'process',
      write: { ...freshCursor(100, 1), rev: 1, runId: 'mine', by: 1, started: 1, leaseMs: 700 },
    });
  });

  test.each([
    ['delta 1', stored(), at(6), { kind: 'process', write: { rev: 10, last: 5, by: 6, started: 6, runId: 'mine' } }],
    ['delta 2', stored(), at(7), { kind: 'early', delta: 2 }],
    ['delta 0', stored(), at(5), { kind: 'old' }],
    ['delta -4', stored(), at(1), { kind: 'old' }],
    ['number 2 without a cursor', undefined, at(2), { kind: 'early', delta: 2 }],
    ['head, held for another 1 ms', stored({ runId: 'other', started: 6, by: 5 }, 499), at(6), { kind: 'busy', retryAfterMs: 1 }],
    ['head, held on its own behalf', stored({ runId: 'other', started: 6, by: 6 }, 499), at(6), { kind: 'own', retryAfterMs: 1 }],
    ['head of a blocked stream', stored({ blocked }), at(6), { kind: 'blocked' }],
    ['behind the head of a blocked stream', stored({ blocked }), at(9), { kind: 'blocked' }],
    ['head of a stream that goes to a lane', stored({ blocked: { ...blocked, lane: 'l' } }), at(6), { kind: 'process' }],
    ['behind the head of a stream that goes to a lane', stored({ blocked: { ...blocked, lane: 'l' } }), at(7), { kind: 'early', delta: 2 }],
    ['old in a blocked stream', stored({ blocked }), at(5), { kind: 'old' }],
    ['head, lease over while it ran', stored({ runId: 'other', started: 6 }, 500), at(6), { kind: 'process', write: { attempts: 1 } }],
    ['head, lease over before it began', stored({ runId: 'other', started: 5 }, 500), at(6), { kind: 'process', write: { attempts: 0 } }],
    ['early is early though the lease is held', stored({ runId: 'other' }, 0), at(7), { kind: 'early', delta: 2 }],
    ['an older epoch', stored(), at(6, { epoch: 99 }), { kind: 'lost', reason: 'oldEpoch' }],
    ['the epoch before, and done', stored({ prevEpoch: 99, prevLast: 6 }), at(6, { epoch: 99 }), { kind: 'old' }],
    ['the epoch before, and not done', stored({ prevEpoch: 99, prevLast: 6 }), at(7, { epoch: 99 }), { kind: 'lost', reason: 'oldEpoch' }],
    ['a tombstone of the epoch before', stored(), at(7, { epoch: 99, isTombstone: true }), { kind: 'old' }],
    ['a newer epoch', stored(), at(1, { epoch: 101 }), { kind: 'newEpoch' }],
    ['a number that was skipped', stored({ skipped: [3] }), at(3), { kind: 'lost', reason: 'skipped' }],
    ['a tombstone of a number that was skipped', stored({ skipped: [3] }), at(3, { isTombstone: true }), { kind: 'old' }],
    ['below the start', stored({ start: 4 }), at(3), { kind: 'lost', reason: 'beforeStart' }],
    ['at the start', stored({ start: 4 }), at(4), { kind: 'old' }],
    ['a number done lately, by its key', stored({ recent }), at(4), { kind: 'old' }],
    ['a number done lately, by another key', stored({ recent }), at(5), reused],
    ['a number of long ago', stored({ recent }), at(2, { originMs: 40 }), { kind: 'old' }],
    ['a number of long ago, made after those of lately', stored({ recent }), at(2, { originMs: 41 }), reused],
    ['a number of long ago that does not say when', stored({ recent }), at(2, { originMs: undefined }), { kind: 'old' }],
    ['a number done lately, of a message without a key', stored({ recent }), at(5, { key: '' }), { kind: 'old' }],
  ] as const)('%s', (_, current, arrival, expected) => {
    expect(decideSequence(current, arrival, run(arrival.sequence), 1)).toMatchObject(expected);
  });

  test.each([
    [7, 7, { kind: 'process', write: { last: 6, start: 7 } }],
    [7, 8, { kind: 'early', delta: 2 }],
    [7, 6, { kind: 'lost', reason: 'beforeStart' }],
    ['firstSeen', 8, { kind: 'unstarted' }],
  ] as [StartAt, number, object][])('a stream that starts at %s, without a cursor: number %i', (startAt, sequence, expected) => {
    expect(decideSequence(undefined, at(sequence), run(sequence), startAt)).toMatchObject(expected);
  });

  test.each<[string, object]>([
    ['last', { last: '5' }],
    ['last', { last: -1 }],
    ['epoch', { epoch: undefined }],
    ['fields of other forms', { skipped: 'none' }],
    ['fields of other forms', { blocked: 'yes' }],
  ])('a cursor that was edited is no cursor, and its %s is named', (named, changes) => {
    const edited = { ...stored(), record: { ...cursor(), ...changes } as Cursor };
    expect(() => decideSequence(edited, at(6), run(6), 1)).toThrow(named);
  });
});

describe('decideNewEpoch', () => {
  const rules = { writeId: 'w', follows: false, startAt: 1, nowMs: 77 } as const;
  test('stops the stream, where nobody holds it', () => {
    const write = { rev: 10, last: 5, epoch: 100, runId: '', opId: 'w', blocked: { seq: 3, reason: 'epoch', sinceMs: 77, epoch: 101 } };
    expect(decideNewEpoch(stored(), { epoch: 101, sequence: 3 }, rules)).toMatchObject(write);
    expect(decideNewEpoch(stored({ runId: 'other' }, 499), { epoch: 101, sequence: 3 }, rules)).toBeUndefined();
    expect(decideNewEpoch(stored({ runId: 'other' }, 500), { epoch: 101, sequence: 3 }, rules)).toMatchObject(write);
    expect(decideNewEpoch(stored({ blocked }), { epoch: 101, sequence: 3 }, rules)).toBeUndefined();
  });

  test('or goes on in it, and remembers how far it had come', () => {
    const write = { rev: 10, last: 0, start: 1, epoch: 101, prevEpoch: 100, prevLast: 5, blocked: null };
    expect(decideNewEpoch(stored(), { epoch: 101, sequence: 3 }, { ...rules, follows: true })).toMatchObject(write);
    const fromFirst = { ...rules, follows: true, startAt: 'firstSeen' } as const;
    expect(decideNewEpoch(stored(), { epoch: 101, sequence: 3 }, fromFirst)).toMatchObject({ last: 2, start: 3 });
  });
});

describe('what becomes of a cursor', () => {
  const held = cursor({ runId: 'mine', by: 6, started: 6, attempts: 2 });

  test('moved on it has no attempts, and remembers the last twenty', () => {
    const many = Array.from({ length: 25 }, (_, index) => ({ seq: index + 6, key: 'k', originMs: 1 }));
    const next = moved(held, 30, many);
    expect(next).toMatchObject({ last: 30, attempts: 0, runId: 'mine' });
    expect([next.recent.length, next.recent[0]?.seq]).toEqual([20, 11]);
    expect(keptFor(next, 4)).toMatchObject({ by: 4, started: 31, runId: 'mine' });
  });

  test('released it stays where it was, and only a failure counts', () => {
    expect(released(held)).toMatchObject({ last: 5, runId: '', opId: 'mine', by: 0, attempts: 2 });
    expect(released(released(held))).toMatchObject({ runId: '', opId: 'mine' });
    expect(failed(held)).toMatchObject({ last: 5, runId: '', by: 0, attempts: 3 });
    expect(stopped(held, 7)).toMatchObject({ last: 5, runId: '', by: 0, blocked });
  });

  test('a skip goes one number on and remembers it, of the last thousand', () => {
    const long = cursor({ skipped: Array.from({ length: 1_000 }, (_, index) => index) });
    expect(skippedNext(cursor({ blocked, attempts: 3 }), 'w')).toMatchObject({
      rev: 10,
      last: 6,
      attempts: 0,
      blocked: null,
      skipped: [6],
      opId: 'w',
    });
    expect([skippedNext(long, 'w').skipped.length, skippedNext(long, 'w').skipped[0]]).toEqual([1_000, 1]);
  });

  test('a replay goes back, in another round', () => {
    const before = cursor({ recent, skipped: [2, 5], start: 4 });
    expect(replayedFrom(before, 'w', 5)).toMatchObject({ rev: 10, last: 4, start: 4, round: 1, skipped: [2], recent: [recent[0]] });
    expect(replayedFrom(before, 'w', 2)).toMatchObject({ last: 1, start: 2 });
  });

  test('another epoch keeps the round', () => {
    expect(inEpoch(cursor({ round: 3 }), 'w', 200, 1)).toMatchObject({
      rev: 10,
      epoch: 200,
      round: 3,
      prevEpoch: 100,
      prevLast: 5,
      recent: [],
    });
  });
});

test('what arrives is told from another message by the first digits of its hashed key', () => {
  const attributes = { 'ptk-key': 'k1', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' };
  const arrival = { epoch: 1, sequence: 2, key: 'f0ac09e13c3bef9c', originMs: 1_767_225_600_000, isTombstone: false };
  expect(arrivalOf(testMessage({ attributes }), { epoch: 1, sequence: 2 })).toEqual({
    ...arrival,
    key: expect.stringMatching(/^[\da-f]{16}$/),
  });
  expect(arrivalOf(testMessage({ attributes: { 'ptk-tombstone': 'x' } }), { epoch: 1, sequence: 2 })).toEqual({
    ...{ epoch: 1, sequence: 2, key: '', originMs: undefined, isTombstone: true },
  });
});

test('an early message that is given back waits the longer the further ahead it is, a second at most', () => {
  expect([2, 3, 11, 12, 500].map(earlyRetryMs)).toEqual([100, 200, 1_000, 1_000, 1_000]);
});
