import { describe, expect, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import type { Evidence } from '../../src/shared/dedup/outcomes.ts';
import { fingerprintOf, type OutgoingMessage } from '../../src/shared/message.ts';
import { hash } from '../../src/shared/names.ts';
import { deadLetterTopic, rejectedDeadLetters } from '../../src/shared/transports/dead-letters.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { manualSystem } from '../support/manual-system.ts';

const why = { kind: 'deadLetter', reason: 'malformed', detail: 'ptk-seq is "1e3"' } as const;

/** A topic, and what was published to it. */
function setUp() {
  const published: OutgoingMessage[] = [];
  const publisher = {
    publish: async (_topic: string, messages: readonly OutgoingMessage[]) => {
      published.push(...messages);
      return messages.map(() => '1');
    },
  };
  return { published, letters: deadLetterTopic(publisher, 'dead') };
}

describe('a dead letter on a topic', () => {
  test.each([94, 95, 100])('of %i attributes keeps within 100, with its reason', async (count) => {
    const { published, letters } = setUp();
    const attributes = Object.fromEntries(Array.from({ length: count }, (_, index) => [`own-${index}`, 'x']));
    await letters.publish(testMessage({ attributes }), why);
    expect(Object.keys(published[0]?.attributes ?? {})).toHaveLength(100);
    expect(published[0]?.attributes).toMatchObject({ 'own-0': 'x', 'own-93': 'x', 'ptk-dead-reason': 'malformed' });
  });

  test('is the message as it came, with why and from where', async () => {
    const { published, letters } = setUp();
    const data = Buffer.from([0x00, 0xff]);
    await letters.publish(testMessage({ messageId: '5', data, attributes: { 'ptk-key': 'k', a: '1' }, orderingKey: 'o' }), why);
    expect(published).toEqual([
      {
        data,
        attributes: {
          'ptk-key': 'k',
          a: '1',
          'ptk-origin-id': '5',
          'ptk-origin-time': '2026-01-01T00:00:00.000Z',
          'ptk-dead-reason': 'malformed',
          'ptk-dead-detail': 'ptk-seq is "1e3"',
          'ptk-dead-source': 'projects/test/subscriptions/test',
        },
        orderingKey: 'o',
      },
    ]);
  });

  test('says why it died this time where it died before', async () => {
    const { published, letters } = setUp();
    await letters.publish(testMessage({ attributes: { 'ptk-dead-reason': 'conflict' } }), why);
    expect(published[0]?.attributes['ptk-dead-reason']).toBe('malformed');
  });

  test('is published though its key is what is wrong', async () => {
    const { published, letters } = setUp();
    await letters.publish(testMessage({ attributes: { 'ptk-key': '' } }), why);
    await letters.publish(testMessage({ messageId: '' }), why);
    expect(published.map(({ attributes }) => attributes['ptk-key'])).toEqual(['', 'none']);
  });

  test.each([
    ['a', 1_024, 1_024],
    ['a', 1_025, 1_024],
    ['é', 512, 512],
    ['é', 513, 512],
    ['€', 341, 341],
    ['€', 342, 341],
    ['😀', 256, 256],
    ['😀', 257, 256],
  ])('keeps of %j × %i the first %i, in detail and source', async (char, count, kept) => {
    const { published, letters } = setUp();
    await letters.publish(testMessage({ subscription: char.repeat(count) }), { ...why, detail: char.repeat(count) });
    const { 'ptk-dead-detail': detail, 'ptk-dead-source': source } = published[0]?.attributes ?? {};
    expect([detail, source]).toEqual([char.repeat(kept), char.repeat(kept)]);
  });

  test.each([1, 2, 3])('never cuts through a character that begins %i bytes before the end', async (bytes) => {
    const { published, letters } = setUp();
    const whole = 'a'.repeat(1_024 - bytes);
    await letters.publish(testMessage(), { ...why, detail: `${whole}😀` });
    expect(published[0]?.attributes['ptk-dead-detail']).toBe(whole);
  });

  test.each(['c'.repeat(256), '\u0001'.repeat(85), 'é'.repeat(42)])(
    'of a conflict keeps its evidence whole, for the consumer %j',
    async (consumer) => {
      const { published, letters } = setUp();
      const system = manualSystem();
      const store = memoryRecordStore<DedupRecord>(system.clock);
      const deliver = createDedup({ consumer, store, system, log: silentLog })(async () => {});
      const context = { signal: new AbortController().signal };
      const copy = (data: string) => testMessage({ data, attributes: { 'ptk-key': 'k', own: 'secret-attribute' } });
      await deliver(copy('first'), context);
      const verdict = await deliver(copy('secret-payload'), context);
      if (verdict.kind !== 'deadLetter') throw new Error(`the verdict is ${verdict.kind}`);
      await letters.publish(copy('secret-payload'), verdict);
      const attributes = published[0]?.attributes ?? {};
      const found: Evidence = JSON.parse(attributes['ptk-dead-detail'] ?? '');
      expect(found).toEqual({
        consumer,
        keyHash: hash('k'),
        fingerprint: fingerprintOf(copy('secret-payload')),
        stored: fingerprintOf(copy('first')),
        firstSeenAt: new Date(system.clock.nowMs()).toISOString(),
      });
      const ours = Object.entries(attributes).filter(([name]) => name.startsWith('ptk-'));
      expect(JSON.stringify(ours)).not.toContain('secret');
    },
  );

  const source = 'projects/test/subscriptions/test';
  const [reason, key, from] = [{ 'ptk-dead-reason': 'malformed' }, { 'ptk-key': `${source}/1` }, { 'ptk-dead-source': source }];
  const [id, time] = [{ 'ptk-origin-id': '1' }, { 'ptk-origin-time': '2026-01-01T00:00:00.000Z' }];
  const detail = { 'ptk-dead-detail': 'ptk-seq is "1e3"' };
  test.each<[number, string, Record<string, string>]>([
    [9_999_803, '', { ...reason, ...key, ...from, ...id, ...time, ...detail }],
    [9_999_804, '', { ...reason, ...key, ...from, ...id, ...time }],
    [9_999_803, 'o', { ...reason, ...key, ...from, ...id, ...time }],
    [9_999_834, '', { ...reason, ...key, ...from, ...id, ...time }],
    [9_999_835, '', { ...reason, ...key, ...from, ...id, ...detail }],
    [9_999_934, '', { ...reason, ...key }],
    [9_999_935, '', { ...reason, ...id }],
    [9_999_999, '', {}],
  ])('of %i bytes of data with the ordering key "%s" keeps within 10 MB, whole', async (bytes, orderingKey, fits) => {
    const { published, letters } = setUp();
    const data = Buffer.alloc(bytes);
    await letters.publish(testMessage({ data, attributes: { a: '' }, orderingKey }), why);
    expect(published).toHaveLength(1);
    expect(published[0]?.data).toBe(data);
    expect(published[0]?.attributes).toEqual({ a: '', ...fits });
  });

  test('is not done before the topic has it', async () => {
    const letters = deadLetterTopic({ publish: () => Promise.reject(new Error('no topic')) }, 'dead');
    await expect(letters.publish(testMessage(), why)).rejects.toThrow('no topic');
  });
});

test('without a topic a dead letter ends as an error in the log, without its payload', async () => {
  const logged: object[] = [];
  const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
  await rejectedDeadLetters(log).publish(testMessage({ messageId: '5', data: 'secret' }), why);
  expect(logged).toEqual([
    { messageId: '5', subscription: 'projects/test/subscriptions/test', reason: 'malformed', detail: 'ptk-seq is "1e3"' },
  ]);
});
