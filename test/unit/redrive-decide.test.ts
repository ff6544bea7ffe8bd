import { describe, expect, test } from 'vitest';
import { type DedupRecord, decideClaim, decideRedrive, duplicateKind, type Redrive } from '../../src/shared/dedup/decide.ts';
import { claim, dedupRecord, storedRecord } from '../support/dedup-records.ts';

/** An operator's word on the dead letter of a message with fingerprint `new`. */
const redrive = (stored: Partial<DedupRecord> | undefined, ageMs: number, as: Redrive) =>
  decideRedrive(stored && storedRecord(stored, ageMs), { fingerprint: 'new', runId: 'operator', as });

describe('decideRedrive', () => {
  test('accept-new lets the new message run in place of the one that is done', () => {
    const decision = redrive({ state: 'done', fingerprint: 'old', result: '["x"]' }, 5, 'accept-new');
    expect(decision).toEqual({
      kind: 'write',
      runs: true,
      write: dedupRecord({ rev: 5, state: 'failed', runId: 'operator', attempts: 0, fingerprint: 'new', supersedes: 'old', result: null }),
    });
  });

  test.each<[string, Partial<DedupRecord>, number, object]>([
    ['done already by the new message', { state: 'done', fingerprint: 'new' }, 5, { kind: 'settled' }],
    ['let through already, and not run yet', { state: 'failed', fingerprint: 'new', supersedes: 'old' }, 5, { kind: 'publish' }],
    ['running, its lease alive', { state: 'running', fingerprint: 'old' }, 499, { kind: 'busy', retryAfterMs: 1 }],
    [
      'a dead run of the same message',
      { state: 'running', fingerprint: 'new' },
      500,
      { kind: 'write', runs: true, write: { state: 'failed', attempts: 0, supersedes: null } },
    ],
    ['a dead run of another message', { state: 'running', fingerprint: 'old' }, 500, { kind: 'write', write: { supersedes: 'old' } }],
    ['of another format', { v: 2 } as unknown as Partial<DedupRecord>, 5, { kind: 'unreadable', found: 'format 2' }],
  ])('accept-new where the record is %s', (_, stored, ageMs, decision) => {
    expect(redrive(stored, ageMs, 'accept-new')).toMatchObject(decision);
  });

  test.each<[string, Partial<DedupRecord>, number, object]>([
    ['done', { state: 'done', fingerprint: 'old' }, 5, { kind: 'settled' }],
    ['failed', { state: 'failed', fingerprint: 'old' }, 5, { kind: 'settled' }],
    [
      'a dead run',
      { state: 'running', fingerprint: 'new' },
      500,
      { kind: 'write', runs: false, write: { state: 'done', rev: 5, runId: 'operator', attempts: 2 } },
    ],
    ['a live run', { state: 'running', fingerprint: 'new' }, 499, { kind: 'busy', retryAfterMs: 1 }],
  ])('keep-old where the record is %s', (_, stored, ageMs, decision) => {
    expect(redrive(stored, ageMs, 'keep-old')).toMatchObject(decision);
  });

  test('without a record accept-new publishes and keep-old has nothing to do', () => {
    expect([redrive(undefined, 0, 'accept-new').kind, redrive(undefined, 0, 'keep-old').kind]).toEqual(['publish', 'settled']);
  });

  test('after accept-new the new message runs, and a late copy of the old one is a duplicate before and after that', () => {
    const decision = redrive({ state: 'done', fingerprint: 'old' }, 5, 'accept-new');
    if (decision.kind !== 'write') throw new Error('nothing is written');
    const accepted = { record: decision.write, version: 'v5', writtenAtMs: 1_000, nowMs: 1_001 };
    expect(decideClaim(accepted, { ...claim, fingerprint: 'old' }).kind).toBe('duplicate');
    const run = decideClaim(accepted, { ...claim, fingerprint: 'new' });
    if (run.kind !== 'run') throw new Error('it does not run');
    expect(run.write).toMatchObject({ attempts: 1, rev: 6, fingerprint: 'new', supersedes: 'old' });
    const done = { ...accepted, record: { ...run.write, state: 'done' as const } };
    expect(decideClaim(done, { ...claim, fingerprint: 'old' }).kind).toBe('duplicate');
    expect(decideClaim(done, { ...claim, fingerprint: 'third' }).kind).toBe('conflict');
  });
});

test.each([
  ['m1', 'o1', 'redelivery'],
  ['m2', 'o1', 'hop'],
  ['m2', 'o2', 'publisher_retry'],
])('a copy with message id %s and origin %s is a %s', (messageId, originId, kind) => {
  expect(duplicateKind({ messageId: 'm1', originId: 'o1' }, { messageId, originId })).toBe(kind);
});
