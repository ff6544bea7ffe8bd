import { describe, expect, test } from 'vitest';
import type { OutgoingMessage } from '../../src/shared/message.ts';
import { deadLetterTopic, rejectedDeadLetters } from '../../src/shared/transports/dead-letters.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';

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

  test('fits an attribute however long the detail and the subscription are', async () => {
    const { published, letters } = setUp();
    await letters.publish(testMessage({ subscription: '€'.repeat(2_000) }), { ...why, detail: '€'.repeat(2_000) });
    const attributes = published[0]?.attributes ?? {};
    expect(attributes['ptk-dead-detail']).toBe('€'.repeat(300));
    expect(Buffer.byteLength(attributes['ptk-dead-source'] ?? '')).toBeLessThanOrEqual(1_024);
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
