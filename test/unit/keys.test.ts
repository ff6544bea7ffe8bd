import { describe, expect, test } from 'vitest';
import { attributeKey, cloudEventKey, keyOfSetting, messageIdKey } from '../../src/shared/adapters/keys.ts';
import { dedupKeyOf, type Message } from '../../src/shared/message.ts';
import { hash } from '../../src/shared/names.ts';
import { testMessage } from '../../src/testing/doubles.ts';

const error = (code: string, message: string) => expect.objectContaining({ code, message });
const withAttributes = (attributes: Message['attributes']) => testMessage({ messageId: '9', attributes });
const event = { 'ce-source': '//pubsub/t', 'ce-id': '7' };

describe('attributeKey', () => {
  test('is a JSON array of the values, in the order of the names', () => {
    const message = withAttributes({ tenant: 't"1', order: '7' });
    expect(attributeKey('order')(message)).toBe('["7"]');
    expect(attributeKey('tenant', 'order')(message)).toBe('["t\\"1","7"]');
    expect(attributeKey('order', 'tenant')(message)).toBe('["7","t\\"1"]');
  });

  test.each<[string, Message['attributes'], Message['attributes']]>([
    ['a comma', { x: 'a', y: 'b,c' }, { x: 'a,b', y: 'c' }],
    ['a quote', { x: 'a","b', y: 'c' }, { x: 'a', y: 'b","c' }],
    ['a backslash', { x: 'a\\', y: ',"b' }, { x: 'a\\",', y: 'b' }],
  ])('tells values apart that hold %s', (_, one, other) => {
    const key = attributeKey('x', 'y');
    expect(key(withAttributes(one))).not.toBe(key(withAttributes(other)));
  });

  test('of one name is no key of several, even where the value looks like one', () => {
    const pair = attributeKey('x', 'y')(withAttributes({ x: 'a', y: 'b' }));
    expect(attributeKey('x')(withAttributes({ x: '["a","b"]' }))).not.toBe(pair);
  });

  test.each(['order', '__proto__', 'constructor'])('says that %s is missing', (name) => {
    expect(() => attributeKey('tenant', name)(withAttributes({ tenant: 't' }))).toThrow(
      error('KEY_MISSING', `the attribute ${name} is missing`),
    );
  });

  test.each(['', ' ', '\n'])('refuses the empty value %j', (order) => {
    expect(() => attributeKey('order')(withAttributes({ order }))).toThrow(error('MALFORMED_MESSAGE', 'order is empty'));
  });

  test('refuses a value with half of a character', () => {
    expect(() => attributeKey('order')(withAttributes({ order: 'a\ud83d' }))).toThrow(
      error('MALFORMED_MESSAGE', 'order holds a lone surrogate'),
    );
  });

  test.each([[[]], [['']], [['order', '']]])('is not made of the names %j', (names) => {
    expect(() => attributeKey(...names)).toThrow(
      error('INVALID_SETTINGS', 'a key of attributes needs their names, and none of them empty'),
    );
  });
});

describe('cloudEventKey', () => {
  test('is the key that a message with source and id has by itself', () => {
    expect(cloudEventKey()(withAttributes(event))).toBe('//pubsub/t 7');
    expect(cloudEventKey()(withAttributes(event))).toBe(dedupKeyOf(withAttributes(event)));
  });

  test('goes before a key that was stamped', () => {
    expect(dedupKeyOf(withAttributes({ ...event, 'ptk-key': 'stamped' }), cloudEventKey())).toBe('//pubsub/t 7');
  });

  test('is over long the digest that such a message has by itself', () => {
    const long = withAttributes({ 'ce-source': 's'.repeat(1_020), 'ce-id': '12345' });
    expect(cloudEventKey()(long)).toMatch(/^sha256:[\da-f]{64}$/);
    expect(cloudEventKey()(long)).toBe(dedupKeyOf(long));
  });

  test.each(['ce-source', 'ce-id'] as const)('needs %s, and not empty', (name) => {
    const { [name]: _, ...half } = event;
    expect(() => cloudEventKey()(withAttributes(half))).toThrow(error('KEY_MISSING', `the attribute ${name} is missing`));
    expect(() => cloudEventKey()(withAttributes({ ...event, [name]: '' }))).toThrow(error('MALFORMED_MESSAGE', `${name} is empty`));
  });
});

describe('messageIdKey', () => {
  test('is subscription and message id, whatever the attributes say', () => {
    const message = withAttributes({ ...event, 'ptk-key': 'stamped' });
    expect(messageIdKey()(message)).toBe('projects/test/subscriptions/test/9');
    expect(messageIdKey()(message)).toBe(dedupKeyOf(withAttributes({})));
    expect(dedupKeyOf(message, messageIdKey())).toBe('projects/test/subscriptions/test/9');
  });
});

describe('keyOfSetting', () => {
  const message = testMessage({
    messageId: '9',
    attributes: { ...event, tenant: 't', order: '7', 'ptk-key': 'stamped' },
    data: '{"b": 1, "a": [5, 6, 7]}',
  });

  test.each([undefined, ''])('makes nothing of %j', (text) => {
    expect(keyOfSetting(text)).toBeUndefined();
  });

  test.each([
    ['message-id', 'projects/test/subscriptions/test/9'],
    ['cloudevent', '//pubsub/t 7'],
    ['attribute:order', '["7"]'],
    ['attribute:tenant,order', '["t","7"]'],
    ['attribute:tenant,\n order', '["t","7"]'],
    ['payload', `sha256:${hash('{"a":[5,6,7],"b":1}')}`],
    ['payload:$.b', '[1]'],
    ['payload:$.a[0];$.b', '[5,1]'],
    ["payload: $['a'][0:1] ; $['b','c']", '[5,1]'],
    ['payload:$["b","\\u003b"]', '[1]'],
  ])('makes of %s the key %s', (text, key) => {
    expect(keyOfSetting(text)?.(message)).toBe(key);
  });

  test.each(['attributes:a', 'Payload', 'message-id:9', 'cloudevent:', 'payload;$.a', 'attribute', ' payload', 'constructor'])(
    'refuses %j and names the forms that there are',
    (text) => {
      expect(() => keyOfSetting(text)).toThrow(
        error(
          'INVALID_SETTINGS',
          `DEDUP_KEY is ${JSON.stringify(text)}: it must be message-id, cloudevent, attribute:NAME[,NAME…], payload or payload:PATH[;PATH…]`,
        ),
      );
    },
  );

  test.each([
    ['attribute:', 'a key of attributes needs their names'],
    ['attribute:a,,b', 'a key of attributes needs their names'],
    ['payload:', 'the JSONPath "" cannot be read'],
    ['payload:$.a;', 'the JSONPath "" cannot be read'],
    ['payload:$.a;b', 'the JSONPath "b" cannot be read'],
    ['payload:$.a,$.b', 'the JSONPath "$.a,$.b" cannot be read'],
  ])('says of %s what is wrong', (text, reason) => {
    expect(() => keyOfSetting(text)).toThrow(
      expect.objectContaining({
        code: 'INVALID_SETTINGS',
        message: expect.stringContaining(`DEDUP_KEY is ${JSON.stringify(text)}: ${reason}`),
      }),
    );
  });
});
