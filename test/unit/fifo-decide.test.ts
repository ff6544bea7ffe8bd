import { describe, expect, test } from 'vitest';
import { advanced, type Cursor, decideSequence, failed, released, stopped } from '../../src/shared/fifo/decide.ts';

const cursor = (changes: Partial<Cursor> = {}): Cursor => ({
  rev: 9,
  last: 5,
  epoch: 100,
  runId: '',
  by: 0,
  started: 5,
  leaseMs: 500,
  attempts: 0,
  blocked: null,
  ...changes,
});
const stored = (changes: Partial<Cursor> = {}, ageMs = 0) => ({
  record: cursor(changes),
  version: 'v',
  writtenAtMs: 1_000,
  nowMs: 1_000 + ageMs,
});
const at = (sequence: number, epoch = 100) => ({ stream: 's', epoch, sequence });
const run = (by: number) => ({ runId: 'mine', leaseMs: 700, by });
const blocked = { seq: 6, reason: 'attempts', sinceMs: 7 } as const;

describe('decideSequence', () => {
  test('without a cursor number 1 is the head and fixes the epoch', () => {
    expect(decideSequence(undefined, at(1), run(1))).toEqual({
      kind: 'process',
      write: { rev: 1, last: 0, epoch: 100, runId: 'mine', by: 1, started: 1, leaseMs: 700, attempts: 0, blocked: null },
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
    ['head of a blocked stream', stored({ blocked }), at(6), { kind: 'blocked', blocked }],
    ['behind the head of a blocked stream', stored({ blocked }), at(9), { kind: 'blocked', blocked }],
    ['old in a blocked stream', stored({ blocked }), at(5), { kind: 'old' }],
    ['head, lease over while it ran', stored({ runId: 'other', started: 6 }, 500), at(6), { kind: 'process', write: { attempts: 1 } }],
    ['head, lease over before it began', stored({ runId: 'other', started: 5 }, 500), at(6), { kind: 'process', write: { attempts: 0 } }],
    ['early is early though the lease is held', stored({ runId: 'other' }, 0), at(7), { kind: 'early', delta: 2 }],
    ['an older epoch', stored(), at(6, 99), { kind: 'oldEpoch' }],
    ['a newer epoch', stored(), at(1, 101), { kind: 'newEpoch' }],
  ] as const)('%s', (_, current, ref, expected) => {
    expect(decideSequence(current, ref, run(ref.sequence))).toMatchObject(expected);
  });
});

test('a cursor that advanced is free and has no attempts', () => {
  expect(advanced(cursor({ runId: 'mine', started: 6, attempts: 2 }))).toMatchObject({ last: 6, runId: '', by: 0, attempts: 0 });
});

test('a cursor that was released stays where it was, and only a failure counts', () => {
  const held = cursor({ runId: 'mine', by: 6, started: 6, attempts: 2 });
  expect(released(held)).toMatchObject({ last: 5, runId: '', by: 0, attempts: 2 });
  expect(failed(held)).toMatchObject({ last: 5, runId: '', by: 0, attempts: 3 });
  expect(stopped(held, 7)).toMatchObject({ last: 5, runId: '', by: 0, blocked });
});
