import type { Claim, DedupRecord } from '../../src/shared/dedup/decide.ts';
import type { Stored } from '../../src/shared/ports.ts';

export const claim: Claim = {
  runId: 'mine',
  key: 'k',
  fingerprint: 'f',
  seqRef: null,
  messageId: 'm1',
  originId: 'm1',
  leaseMs: 500,
  ttlMs: 60_000,
  maxAttempts: 3,
  effects: 'internal',
  seenAtMs: 7,
};

export const dedupRecord = (changes: Partial<DedupRecord> = {}): DedupRecord => ({
  v: 1,
  rev: 4,
  state: 'running',
  runId: 'other',
  attempts: 2,
  leaseMs: 500,
  ttlMs: 60_000,
  key: 'k',
  fingerprint: 'f',
  supersedes: null,
  seqRef: null,
  messageId: 'm1',
  originId: 'm1',
  firstSeenAtMs: 1,
  result: null,
  ...changes,
});

export const storedRecord = (changes: Partial<DedupRecord>, ageMs: number): Stored<DedupRecord> => ({
  record: dedupRecord(changes),
  version: 'v4',
  writtenAtMs: 1_000,
  nowMs: 1_000 + ageMs,
});
