import { describe, expect, test } from 'vitest';
import type { RedriveParts } from '../../src/cli/redrive/redriving.ts';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import type { Message } from '../../src/shared/message.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { manualSystem } from '../support/manual-system.ts';
import { keyed, recordId, redriving, withConflict } from '../support/redriving.ts';

describe('redrive --as accept-new', () => {
  test('runs the message once, and copies of the old one stay duplicates', async () => {
    const { ask, ran, deliver, deliverPublished, letters, publisher } = await withConflict();
    expect(await ask('accept-new')).toEqual({ accepted: 1, kept: 0, left: 0 });
    expect(publisher.published).toEqual([
      {
        topic: 'projects/test/topics/source',
        messageId: 'm1',
        message: {
          data: Buffer.from('new'),
          attributes: { 'ptk-key': 'k', own: '1', 'ptk-origin-id': 'm2', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' },
        },
      },
    ]);
    expect(letters.kept()).toEqual([]);
    expect(await deliverPublished()).toEqual(['processed']);
    expect([await deliver(keyed('m1', 'old')), await deliver(keyed('m3', 'new', { own: '1' }))]).toEqual(['duplicate', 'duplicate']);
    expect(ran).toEqual(['old', 'new']);
  });

  test.each(['before the record is written', 'before it is published', 'once it is published', 'before the ack', 'once it is acked'])(
    'that is killed %s, and run again, runs the message once',
    async (point) => {
      const { ask, ran, store, publisher, letters, deliverPublished } = await withConflict();
      const killed = () => Promise.reject(new Error('killed'));
      const dying: Partial<RedriveParts> =
        {
          'before the record is written': { store: { get: store.get, put: killed } },
          'before it is published': { publisher: { publish: killed } },
          'once it is published': {
            publisher: { publish: (...args: Parameters<typeof publisher.publish>) => publisher.publish(...args).then(killed) },
          },
          'before the ack': { letters: { ...letters, ack: killed } },
          'once it is acked': {
            letters: { ...letters, ack: (letter: Parameters<typeof letters.ack>[0]) => letters.ack(letter).then(killed) },
          },
        }[point] ?? {};
      await expect(ask('accept-new', dying)).rejects.toThrow('killed');
      const acked = letters.kept().length === 0;
      expect(await ask('accept-new')).toEqual({ accepted: acked ? 0 : 1, kept: 0, left: 0 });
      const reasons = await deliverPublished();
      expect(reasons.filter((reason) => reason === 'processed')).toHaveLength(1);
      expect(reasons.filter((reason) => !['processed', 'duplicate'].includes(reason))).toEqual([]);
      expect(ran).toEqual(['old', 'new']);
    },
  );

  test.each([
    ['of the toolkit', {}],
    ['of their own', { fingerprintOf: ({ data }: Message) => `own ${Buffer.from(data)}` }],
  ])('twice, the second time after the message has run, publishes nothing more, with fingerprints %s', async (_, parts) => {
    const { ask, ran, letters, deliverPublished, publisher } = await withConflict(parts);
    const ack = async () => {
      throw new Error('killed');
    };
    await expect(ask('accept-new', { letters: { ...letters, ack } })).rejects.toThrow('killed');
    await deliverPublished();
    expect(await ask('accept-new')).toEqual({ accepted: 1, kept: 0, left: 0 });
    expect([publisher.published, letters.kept(), ran]).toEqual([[], [], ['old', 'new']]);
  });

  test('runs a dead run with effects outside again', async () => {
    const { ask, ran, dieWith, deliver, deliverPublished } = redriving({ effects: 'external' });
    await dieWith(keyed('m1', 'a'));
    expect(await deliver(keyed('m1', 'a'))).toBe('abandoned');
    expect(await ask('accept-new')).toEqual({ accepted: 1, kept: 0, left: 0 });
    expect(await deliverPublished()).toEqual(['processed']);
    expect(await deliver(keyed('m1', 'a'))).toBe('duplicate');
    expect(ran).toEqual(['a']);
  });

  test('twice of a dead run, killed before the message is published, runs it once', async () => {
    const { ask, ran, dieWith, deliver, deliverPublished } = redriving({ effects: 'external' });
    await dieWith(keyed('m1', 'a'));
    await deliver(keyed('m1', 'a'));
    await expect(ask('accept-new', { publisher: { publish: () => Promise.reject(new Error('killed')) } })).rejects.toThrow('killed');
    expect(await ask('accept-new')).toEqual({ accepted: 1, kept: 0, left: 0 });
    expect(await deliverPublished()).toEqual(['processed']);
    expect(ran).toEqual(['a']);
  });

  test('leaves a second letter of the same key, which would undo the first', async () => {
    const { ask, deliver, ran, deliverPublished, told } = await withConflict();
    await deliver(keyed('m4', 'newer'));
    await deliver(keyed('m2', 'new', { own: '1' }));
    expect(await ask('accept-new')).toEqual({ accepted: 2, kept: 0, left: 1 });
    expect(told).toEqual(['accepted', 'left: another letter with this key was accepted just now', 'accepted']);
    expect(await deliverPublished()).toEqual(['processed', 'duplicate']);
    expect(ran).toEqual(['old', 'new']);
  });

  test('publishes to the topic that is named, and needs to know no other', async () => {
    const { ask, letters, publisher, told } = await withConflict();
    const lost = { ...letters, topicOf: () => Promise.reject(new Error('the topic is deleted')) };
    expect(await ask('accept-new', { letters: lost })).toEqual({ accepted: 0, kept: 0, left: 1 });
    expect(told).toEqual(['left: its topic is not known, so name one with --topic: the topic is deleted']);
    await ask('accept-new', { letters: lost, topic: 'other' });
    expect(publisher.published.map(({ topic }) => topic)).toEqual(['other']);
  });

  test('publishes where the record is gone', async () => {
    const { ask, deliverPublished } = await withConflict();
    const { clock } = manualSystem();
    const empty = memoryRecordStore<DedupRecord>(clock);
    expect(await ask('accept-new', { store: empty })).toEqual({ accepted: 1, kept: 0, left: 0 });
    expect(await empty.get(recordId)).toBeUndefined();
    expect(await deliverPublished()).toEqual(['conflict']);
  });

  test('writes once where another operator does the same at the same time', async () => {
    const { ask, ran, store, letters, deliverPublished } = await withConflict();
    let pulls = 0;
    const other = { ...letters, pull: async () => (++pulls === 1 ? letters.kept() : []) };
    let puts = 0;
    const slow: RecordStore<DedupRecord> = {
      get: store.get,
      async put(...args) {
        if (++puts === 1) await ask('accept-new', { letters: other });
        return store.put(...args);
      },
    };
    await ask('accept-new', { store: slow });
    expect(await deliverPublished()).toEqual(['processed', 'duplicate']);
    expect([ran, puts]).toEqual([['old', 'new'], 1]);
  });
});
