import { describe, expect, test } from 'vitest';
import { decideClaim, decideInbox } from '../../src/shared/dedup/decide.ts';
import { claim, storedRecord as stored } from '../support/dedup-records.ts';

describe('decideClaim', () => {
  test('an unseen key runs, as the first attempt of revision 1', () => {
    expect(decideClaim(undefined, claim)).toMatchObject({
      kind: 'run',
      write: { state: 'running', runId: 'mine', rev: 1, attempts: 1, firstSeenAtMs: 7 },
    });
  });

  test.each([
    ['running, 499 ms old', {}, 499, { kind: 'busy', retryAfterMs: 1 }],
    ['running, 500 ms old: the lease is over', {}, 500, { kind: 'run', write: { rev: 5, attempts: 3, runId: 'mine', firstSeenAtMs: 1 } }],
    ['running by this delivery', { runId: 'mine' }, 499, { kind: 'claimed', version: 'v4' }],
    ['running by this delivery, lease over', { runId: 'mine' }, 500, { kind: 'run', write: { rev: 5, attempts: 3 } }],
    ['running with another fingerprint', { fingerprint: 'g' }, 499, { kind: 'busy' }],
    ['done', { state: 'done' }, 59_999, { kind: 'duplicate' }],
    ['done, at the end of its time', { state: 'done' }, 60_000, { kind: 'run', write: { rev: 5, attempts: 1 } }],
    ['done with another fingerprint', { state: 'done', fingerprint: 'g' }, 0, { kind: 'conflict' }],
    ['done by this delivery', { state: 'done', runId: 'mine' }, 0, { kind: 'duplicate' }],
    ['done under another number', { state: 'done', seqRef: { stream: 's', epoch: 1, sequence: 2 } }, 0, { kind: 'duplicate' }],
    ['failed twice, with a live lease', { state: 'failed' }, 0, { kind: 'run', write: { rev: 5, attempts: 3 } }],
    ['failed three times', { state: 'failed', attempts: 3 }, 0, { kind: 'exhausted' }],
    ['failed three times, long ago', { state: 'failed', attempts: 3 }, 60_000, { kind: 'run', write: { attempts: 1 } }],
  ] as const)('%s', (_, changes, ageMs, expected) => {
    expect(decideClaim(stored(changes, ageMs), claim)).toMatchObject(expected);
  });

  test.each([
    ['running, 499 ms old', {}, 499, { kind: 'busy', retryAfterMs: 1 }],
    ['running, 500 ms old', {}, 500, { kind: 'abandoned', record: { runId: 'other' } }],
    ['running by this delivery, 500 ms old', { runId: 'mine' }, 500, { kind: 'abandoned' }],
    ['failed', { state: 'failed' }, 500, { kind: 'run' }],
    ['done', { state: 'done' }, 500, { kind: 'duplicate' }],
  ] as const)('with effects outside: %s', (_, changes, ageMs, expected) => {
    expect(decideClaim(stored(changes, ageMs), { ...claim, effects: 'external' })).toMatchObject(expected);
  });

  test.each([
    ['format 0', { v: 0 }],
    ['format 2', { v: 2 }],
    ['format unknown', { v: undefined }],
    ['format unknown', { v: '1' }],
    ['format 1 with missing fields', { state: 'paused' }],
    ['format 1 with missing fields', { leaseMs: undefined }],
    ['format 1 with missing fields', { ttlMs: '60000' }],
    ['format 1 with missing fields', { runId: 7 }],
    ['format 1 with missing fields', { fingerprint: 7 }],
    ['format 1 with missing fields', { attempts: 1.5 }],
  ])('what is stored is no record of this version: %s, as in %o', (found, changes) => {
    const odd = stored(changes as object, 0);
    expect([decideClaim(odd, claim), decideInbox(odd, claim)]).toEqual([
      { kind: 'unreadable', found },
      { kind: 'unreadable', found },
    ]);
  });

  test.each([
    ['done', { state: 'done' }, 59_999, 'duplicate'],
    ['done, at the end of its time', { state: 'done' }, 60_000, 'run'],
    ['running', { state: 'running' }, 499, 'duplicate'],
    ['running, its lease over', { state: 'running' }, 500, 'duplicate'],
    ['failed', { state: 'failed' }, 0, 'duplicate'],
  ] as const)('a copy of what an operator replaced, where its successor is %s', (_, changes, ageMs, kind) => {
    const current = stored({ ...changes, fingerprint: 'new', supersedes: 'f' }, ageMs);
    expect(decideClaim(current, claim).kind).toBe(kind);
    if (changes.state === 'done') expect(decideInbox(current, claim).kind).toBe(kind);
  });

  test('a key whose time is over begins anew: only its revision goes on', () => {
    const over = stored({ state: 'done', fingerprint: 'new', supersedes: 'old' }, 60_000);
    expect(decideClaim(over, claim)).toMatchObject({ kind: 'run', write: { rev: 5, attempts: 1, supersedes: null, firstSeenAtMs: 7 } });
  });

  test('without a limit a key may fail for ever', () => {
    expect(decideClaim(stored({ state: 'failed', attempts: 999 }, 0), { ...claim, maxAttempts: 0 })).toMatchObject({
      kind: 'run',
      write: { attempts: 1_000 },
    });
  });
});

describe('decideInbox', () => {
  test.each([
    ['nothing', undefined, { kind: 'run', write: { state: 'done', rev: 1, runId: 'mine' } }],
    ['a run of lease mode', stored({}, 0), { kind: 'run', write: { state: 'done', rev: 5 } }],
    ['done by another delivery', stored({ state: 'done' }, 59_999), { kind: 'duplicate' }],
    ['done by this delivery', stored({ state: 'done', runId: 'mine' }, 0), { kind: 'committed' }],
    ['done with another fingerprint', stored({ state: 'done', fingerprint: 'g' }, 0), { kind: 'conflict' }],
    ['done, at the end of its time', stored({ state: 'done' }, 60_000), { kind: 'run' }],
  ] as const)('%s', (_, current, expected) => {
    expect(decideInbox(current, claim)).toMatchObject(expected);
  });
});
