import { describe, expect, test } from 'vitest';
import { dedupKeyOf, fingerprintOf, forwarded } from '../../src/shared/message.ts';
import { testMessage } from '../../src/testing/doubles.ts';

const malformed = (reason: RegExp) => expect.objectContaining({ code: 'MALFORMED_MESSAGE', message: expect.stringMatching(reason) });
const subscription = 'projects/p/subscriptions/s';
const events = { 'ce-source': '//pubsub/t', 'ce-id': '7' };

describe('dedupKeyOf', () => {
  test('takes the key of the user before every other', () => {
    expect(dedupKeyOf(testMessage({ attributes: { 'ptk-key': 'stamped', ...events } }), () => 'own')).toBe('own');
  });

  test('takes ptk-key where the user has no key for this message', () => {
    expect(dedupKeyOf(testMessage({ attributes: { 'ptk-key': 'stamped', ...events } }), () => undefined)).toBe('stamped');
  });

  test('takes source and id of a CloudEvent before the message id', () => {
    expect(dedupKeyOf(testMessage({ messageId: '9', attributes: events }))).toBe('//pubsub/t 7');
  });

  test.each([{ 'ce-source': '//pubsub/t' }, { 'ce-id': '7' }])(
    'takes the message id where %o is only half of a CloudEvent',
    (attributes) => {
      expect(dedupKeyOf(testMessage({ messageId: '9', subscription, attributes }))).toBe('projects/p/subscriptions/s/9');
    },
  );

  test('tells two subscriptions apart that hand out the same message id', () => {
    const other = dedupKeyOf(testMessage({ messageId: '9', subscription: 'projects/p/subscriptions/other' }));
    expect(other).not.toBe(dedupKeyOf(testMessage({ messageId: '9', subscription })));
  });

  test.each(['', ' ', '\n'])('refuses the empty ptk-key %j and does not fall back to the message id', (key) => {
    expect(() => dedupKeyOf(testMessage({ attributes: { 'ptk-key': key } }))).toThrow(malformed(/^ptk-key is empty$/));
  });

  test('refuses an empty key made by the user', () => {
    expect(() => dedupKeyOf(testMessage(), () => '')).toThrow(malformed(/keyOf is empty/));
  });

  test('refuses a key with half of a character', () => {
    expect(() => dedupKeyOf(testMessage({ attributes: { 'ptk-key': 'a\ud83d' } }))).toThrow(malformed(/lone surrogate/));
    expect(dedupKeyOf(testMessage({ attributes: { 'ptk-key': 'a\ud83d\ude00' } }))).toBe('a😀');
  });

  test('refuses a message without any id', () => {
    expect(() => dedupKeyOf(testMessage({ messageId: '' }))).toThrow(malformed(/messageId is empty/));
  });
});

describe('fingerprintOf', () => {
  const plain = { data: Buffer.from('body'), attributes: { a: '1', b: '2' } };

  test('is the SHA-256 of the sorted attributes and the data', () => {
    expect(fingerprintOf(plain)).toBe('fa77e2e8e93aa6fab13feaa97a8eb600547173e548c8cb1acc5b8cc9f259ce7a');
  });

  test('does not depend on the order of attributes', () => {
    expect(fingerprintOf({ ...plain, attributes: { b: '2', a: '1' } })).toBe(fingerprintOf(plain));
  });

  test.each(['ptk-key', 'ptk-seq', 'ptk-origin-time', 'CloudPubSubDeadLetterSourceDeliveryCount', 'googclient_schemaname', 'traceparent'])(
    'does not see %s, which another publish try may change',
    (name) => {
      expect(fingerprintOf({ ...plain, attributes: { ...plain.attributes, [name]: 'x' } })).toBe(fingerprintOf(plain));
    },
  );

  test.each<[string, Partial<typeof plain>]>([
    ['other data', { data: Buffer.from('bodx') }],
    ['another value', { attributes: { a: '1', b: '3' } }],
    ['one attribute less', { attributes: { a: '1' } as typeof plain.attributes }],
    ['values that changed places', { attributes: { a: '2', b: '1' } }],
  ])('differs for %s', (_, change) => {
    expect(fingerprintOf({ ...plain, ...change })).not.toBe(fingerprintOf(plain));
  });

  test.each(['xptk-key', 'traceparents', 'tracestate2'])('sees %s, which is the user’s', (name) => {
    expect(fingerprintOf({ ...plain, attributes: { ...plain.attributes, [name]: 'x' } })).not.toBe(fingerprintOf(plain));
  });
});

describe('forwarded', () => {
  const message = testMessage({ messageId: '5', data: Buffer.from([0x00, 0xff]), attributes: { a: '1' }, orderingKey: 'o' });

  test('stamps key and origin on the first hop, and keeps body, attributes and ordering key', () => {
    expect(forwarded(message, 'k')).toEqual({
      data: Buffer.from([0x00, 0xff]),
      attributes: { a: '1', 'ptk-key': 'k', 'ptk-origin-id': '5', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' },
      orderingKey: 'o',
    });
  });

  test('leaves on a later hop what the first one stamped', () => {
    const stamps = { 'ptk-key': 'first', 'ptk-origin-id': '1', 'ptk-origin-time': '2025-01-01T00:00:00.000Z' };
    expect(forwarded({ ...message, attributes: stamps }, 'second').attributes).toEqual(stamps);
  });

  test('lets what this hop adds win', () => {
    expect(forwarded({ ...message, attributes: { a: '1' } }, 'k', { a: '2' }).attributes).toMatchObject({ a: '2' });
  });

  test('invents neither a publish time nor an ordering key', () => {
    const outgoing = forwarded({ ...message, publishTimeMs: undefined, orderingKey: '' }, 'k');
    expect(outgoing).not.toHaveProperty('orderingKey');
    expect(outgoing.attributes).not.toHaveProperty('ptk-origin-time');
  });
});
