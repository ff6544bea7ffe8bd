import { describe, expect, test } from 'vitest';
import { decideRelay, type Entry, planNumbers, planRelay, relayBackoffMs, tombstoneOf } from '../../src/shared/outbox/decide.ts';

const nowMs = 1_767_225_600_000;
const unnumbered = (key: string) => ({
  stream: 's',
  key,
  topic: 't',
  message: { data: Buffer.from(key), attributes: { 'ptk-key': key, a: '1' }, orderingKey: 'o' },
});

describe('planNumbers', () => {
  test('begins a stream at 1, in an epoch that is the instant at which it was not there', () => {
    expect(planNumbers({ absentAtMs: 1_000 }, [unnumbered('k')], { nowMs, handoffMs: 30_000 })).toEqual({
      counter: { next: 2, epoch: 1_000, rev: 1, topic: 't' },
      expected: 'absent',
      entries: [
        {
          state: 'pending',
          stream: 's',
          epoch: 1_000,
          seq: 1,
          key: 'k',
          topic: 't',
          message: {
            data: Buffer.from('k'),
            attributes: {
              'ptk-key': 'k',
              a: '1',
              'ptk-stream': 's',
              'ptk-seq': '1',
              'ptk-epoch': '1000',
              'ptk-origin-time': '2026-01-01T00:00:00.000Z',
            },
            orderingKey: 'o',
          },
          nextAttemptAtMs: 1_767_225_630_000,
          attempts: 0,
          messageId: null,
        },
      ],
    });
  });

  test('gives a group the numbers that follow, in its order', () => {
    const state = { counter: { next: 7, epoch: 5, rev: 6 }, version: 'v6' };
    const plan = planNumbers(state, [unnumbered('a'), unnumbered('b'), unnumbered('c')], { nowMs, handoffMs: 1 });
    expect(plan).toMatchObject({ counter: { next: 10, epoch: 5, rev: 7 }, expected: 'v6' });
    expect(plan.entries.map(({ key, seq }) => [key, seq])).toEqual([
      ['a', 7],
      ['b', 8],
      ['c', 9],
    ]);
    expect(plan.entries.map(({ message }) => message?.attributes['ptk-seq'])).toEqual(['7', '8', '9']);
  });

  test('writes its own place over one that the message brought, and keeps where the message came from', () => {
    const attributes = { 'ptk-stream': 'old', 'ptk-seq': '99', 'ptk-epoch': '9', 'ptk-origin-time': '2025-01-01T00:00:00.000Z' };
    const moved = { ...unnumbered('k'), message: { data: Buffer.of(), attributes } };
    const [entry] = planNumbers({ absentAtMs: 3 }, [moved], { nowMs, handoffMs: 1 }).entries;
    expect(entry?.message?.attributes).toEqual({
      'ptk-stream': 's',
      'ptk-seq': '1',
      'ptk-epoch': '3',
      'ptk-origin-time': '2025-01-01T00:00:00.000Z',
    });
  });
});

describe('tombstoneOf', () => {
  test('keeps the key and the place, and nothing else of the message', () => {
    const attributes = { 'ptk-key': 'k', 'ptk-stream': 's', 'ptk-seq': '4', 'ptk-epoch': '1', 'ptk-deliver-at': 'x', a: '1' };
    expect(tombstoneOf({ data: Buffer.from('big'), attributes, orderingKey: 'o' }, 'refused')).toEqual({
      data: new Uint8Array(),
      attributes: { 'ptk-key': 'k', 'ptk-stream': 's', 'ptk-seq': '4', 'ptk-epoch': '1', 'ptk-tombstone': 'refused' },
    });
  });

  test('does not invent a key', () => {
    expect(tombstoneOf({ data: Buffer.of(), attributes: {} }, 'refused').attributes).toEqual({ 'ptk-tombstone': 'refused' });
  });
});

describe('decideRelay', () => {
  const mine = { runId: 'me', leaseMs: 500 };
  const held = (atMs: number, runId = 'other') => ({
    record: { rev: 3, runId, leaseMs: 1_000 },
    version: 'v3',
    writtenAtMs: 10_000,
    nowMs: atMs,
  });

  test('takes a stream that nobody has held', () => {
    expect(decideRelay(undefined, mine)).toEqual({ rev: 1, runId: 'me', leaseMs: 500 });
  });

  test('leaves a stream to its holder until the holder’s lease is over', () => {
    expect(decideRelay(held(10_999), mine)).toBeUndefined();
    expect(decideRelay(held(11_000), mine)).toEqual({ rev: 4, runId: 'me', leaseMs: 500 });
  });

  test('leaves a stream alone for as long as its lowest entry backs off, by the store’s clock', () => {
    const resting = (atMs: number) => ({ ...held(atMs, ''), record: { rev: 3, runId: '', leaseMs: 1_000, restMs: 4_000 } });
    expect(decideRelay(resting(13_999), mine)).toBeUndefined();
    expect(decideRelay(resting(14_000), mine)).toEqual({ rev: 4, runId: 'me', leaseMs: 500 });
  });

  test('takes a stream that was given back at once', () => {
    expect(decideRelay(held(10_000, ''), mine)).toEqual({ rev: 4, runId: 'me', leaseMs: 500 });
  });
});

describe('planRelay', () => {
  type Due = readonly [nextAttemptAtMs: number, attempts?: number];
  const pending = (...dues: Due[]) => dues.map(([nextAttemptAtMs, attempts = 0]) => ({ nextAttemptAtMs, attempts }) as Entry);

  test.each([
    ['the lowest is due now', pending([1_000])],
    ['the lowest is due, the next is not', pending([1_000], [9_000])],
    ['the lowest is due again', pending([1_000, 3])],
  ])('publishes where %s', (_, entries) => {
    expect(planRelay(entries, 1_000)).toEqual({ kind: 'publish' });
  });

  test.each([
    ['nothing is pending', pending(), 0],
    ['the lowest is due in 1 ms', pending([1_001]), 0],
    ['only a later one is due, which may not overtake', pending([9_000], [1_000]), 0],
    ['the lowest backs off for 8 s, which nobody need look at meanwhile', pending([9_000, 1], [1_000]), 8_000],
  ])('waits where %s', (_, entries, restMs) => {
    expect(planRelay(entries, 1_000)).toEqual({ kind: 'wait', restMs });
  });
});

test.each([
  [1, 1_000],
  [2, 2_000],
  [9, 256_000],
  [10, 300_000],
  [2_000, 300_000],
])('after attempt %d the relay waits %d ms', (attempts, delayMs) => {
  expect(relayBackoffMs(attempts)).toBe(delayMs);
});
