import { describe, expect, test } from 'vitest';
import type { Letter } from '../../src/cli/redrive/letter-box.ts';
import { header, rowOf } from '../../src/cli/redrive/table.ts';
import type { DedupRecord, Redrive } from '../../src/shared/dedup/decide.ts';
import { type ErrorCode, ToolkitError } from '../../src/shared/errors.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { keyed, recordId, redriving, withConflict } from '../support/redriving.ts';

describe('redrive --as keep-old', () => {
  test('takes the letter away and runs nothing', async () => {
    const { ask, ran, letters, publisher, store, told } = await withConflict();
    const before = await store.get(recordId);
    expect(await ask('keep-old')).toEqual({ accepted: 0, kept: 1, left: 0 });
    expect([letters.kept(), publisher.published, ran, told]).toEqual([[], [], ['old'], ['kept']]);
    expect((await store.get(recordId))?.record).toEqual(before?.record);
  });
});

describe('redrive', () => {
  test.each<Redrive>(['accept-new', 'keep-old'])('--as %s leaves the letter of a key that a run holds', async (as) => {
    const { ask, store, letters, told } = await withConflict();
    const stored = await store.get(recordId);
    if (!stored) throw new Error('nothing is stored');
    const running: DedupRecord = { ...stored.record, rev: 9, state: 'running', leaseMs: 2_500 };
    await store.put(recordId, running, stored.version, 'forever');
    expect(await ask(as)).toEqual({ accepted: 0, kept: 0, left: 1 });
    expect(told).toEqual(['left: busy, a run holds the key for up to 3 s']);
    expect(letters.kept()).toHaveLength(1);
    expect(letters.released()).toBe(1);
  });

  test('leaves and counts letters about anything else, and says nothing of them', async () => {
    const { ask, letters, told } = redriving();
    const evidence = { consumer: 'c', keyHash: 'a'.repeat(64), fingerprint: 'f', stored: 's', firstSeenAt: 'then' };
    const strays: Record<string, string>[] = [
      {},
      { 'ptk-dead-reason': 'malformed', 'ptk-dead-detail': JSON.stringify(evidence) },
      { 'ptk-dead-reason': 'conflict' },
      { 'ptk-dead-reason': 'conflict', 'ptk-dead-detail': 'other work is done under this key' },
      { 'ptk-dead-reason': 'conflict', 'ptk-dead-detail': 'null' },
      { 'ptk-dead-reason': 'conflict', 'ptk-dead-detail': JSON.stringify({ ...evidence, keyHash: '../x' }) },
      { 'ptk-dead-reason': 'abandoned', 'ptk-dead-detail': JSON.stringify({ ...evidence, consumer: '' }) },
      { 'ptk-dead-reason': 'abandoned', 'ptk-dead-detail': JSON.stringify({ ...evidence, stored: 7 }) },
    ];
    await letters.topic.publish(
      'dead',
      strays.map((attributes) => ({ data: Buffer.from('x'), attributes })),
    );
    expect(await ask('accept-new')).toEqual({ accepted: 0, kept: 0, left: 8 });
    expect([told, letters.released()]).toEqual([[], 8]);
  });

  test('leaves the letter of a record that it cannot read', async () => {
    const { ask, store, told } = await withConflict();
    const stored = await store.get(recordId);
    if (!stored) throw new Error('nothing is stored');
    await store.put(recordId, { ...stored.record, v: 2 as 1 }, stored.version, 'forever');
    expect(await ask('accept-new')).toEqual({ accepted: 0, kept: 0, left: 1 });
    expect(told).toEqual(['left: its record is of format 2']);
  });

  test('leaves the letter whose record no store can make sense of, and ends where the store is down', async () => {
    const { ask, store, told } = await withConflict();
    const failing = (code: ErrorCode) => ({ ...store, get: () => Promise.reject(new ToolkitError(code, 'it is a list')) });
    expect(await ask('keep-old', { store: failing('RECORD_UNREADABLE') })).toEqual({ accepted: 0, kept: 0, left: 1 });
    expect(told).toEqual(['left: it is a list']);
    await expect(ask('keep-old', { store: failing('STORE_UNAVAILABLE') })).rejects.toThrow('it is a list');
  });

  test('looks again where a run takes the key meanwhile', async () => {
    const { ask, store, told, publisher } = await withConflict();
    let puts = 0;
    const raced: typeof store = {
      get: store.get,
      async put(key, record, expected, keepMs) {
        const stored = await store.get(key);
        if (stored && ++puts === 1) await store.put(key, { ...stored.record, rev: 8, state: 'running', leaseMs: 900 }, expected, keepMs);
        return store.put(key, record, expected, keepMs);
      },
    };
    expect(await ask('accept-new', { store: raced })).toEqual({ accepted: 0, kept: 0, left: 1 });
    expect([told, publisher.published, puts]).toEqual([['left: busy, a run holds the key for up to 1 s'], [], 1]);
  });

  test('settles a letter that is delivered twice once, by the ack id that it has last', async () => {
    const { ask, letters, deliver, told } = await withConflict();
    await deliver(testMessage({ messageId: 'm5' }));
    const given = letters.kept();
    await letters.topic.publish('dead', [{ data: Buffer.from(''), attributes: {} }]);
    const [stray] = letters.kept().filter((letter) => !given.includes(letter));
    if (!stray) throw new Error('there is no stray');
    let pulls = 0;
    const acked: string[] = [];
    const released: string[] = [];
    const again = {
      ...letters,
      pull: async () =>
        [[...given, stray], [...given, stray].map((letter) => ({ ...letter, ackId: `${letter.ackId} again` }))][pulls++] ?? [],
      ack: async ({ ackId }: Letter) => void acked.push(ackId),
      release: async (left: readonly Letter[]) => void released.push(...left.map(({ ackId }) => ackId)),
    };
    expect(await ask('keep-old', { letters: again })).toEqual({ accepted: 0, kept: 1, left: 1 });
    expect([told, acked, released, pulls]).toEqual([['kept'], ['letter-1', 'letter-1 again'], ['letter-2 again'], 2]);
  });

  test.each([
    [{ messageIds: new Set(['letter-2']) }, 1],
    [{ messageIds: new Set(['m2', 'm3']) }, 2],
    [{ messageIds: new Set(['none']) }, 0],
    [{ limit: 2 }, 2],
    [{ limit: 3 }, 3],
  ])('of what is asked by %j decides %i letters', async (which, kept) => {
    const { ask, deliver, letters } = await withConflict();
    for (const id of ['m3', 'm4']) await deliver(keyed(id, `new ${id}`));
    expect(await ask('keep-old', which)).toEqual({ accepted: 0, kept, left: 3 - kept });
    expect([letters.kept().length, letters.released()]).toEqual([3 - kept, 3 - kept]);
  });

  test.each([
    ['accept-new', 'would be accepted'],
    ['keep-old', 'would be kept'],
  ] as const)('--as %s --dry-run changes nothing', async (as, fate) => {
    const { ask, store, letters, publisher, told } = await withConflict();
    const before = await store.get(recordId);
    expect(await ask(as, { dryRun: true })).toEqual({ accepted: 0, kept: 0, left: 1 });
    expect([told, publisher.published, letters.kept().length]).toEqual([[fate], [], 1]);
    expect(await store.get(recordId)).toEqual(before);
  });
});

test('a line of the table shows no payload, and drives no terminal', async () => {
  const { ask } = await withConflict();
  const lines: string[] = [];
  await ask('keep-old', { dryRun: true, tell: (found, fate) => void lines.push(rowOf({ ...found, key: 'k\u001b[2J\u202e€' }, fate)) });
  expect(header).toBe(
    'message id            consumer                  key                               its content   stored        first seen                outcome',
  );
  expect(lines).toEqual([
    expect.stringMatching(
      /^letter-1 {14}c {25}k\uFFFD\[2J\uFFFD€ {27}[\da-f]{11}… {2}[\da-f]{11}… {2}2026-01-01T00:00:00.000Z {2}would be kept$/,
    ),
  ]);
});
