import { describe, expect, test } from 'vitest';
import { payloadFingerprint, payloadKey } from '../../src/shared/adapters/keys.ts';
import { errorCodeOf, textOf } from '../../src/shared/errors.ts';
import { fingerprintOf } from '../../src/shared/message.ts';
import { hash } from '../../src/shared/names.ts';
import { ack } from '../../src/shared/verdict.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { context, counting, dedupWorkers } from '../support/dedup-workers.ts';

const keyOf = (data: string | Uint8Array, ...paths: string[]) => payloadKey(...paths)(testMessage({ data }));
/** A key without a path: the digest of the canonical payload. */
const whole = (canonical: string) => `sha256:${hash(canonical)}`;
const error = (code: string, message: string) => expect.objectContaining({ code, message });

describe('payloadKey', () => {
  test('without a path is the digest of the payload in canonical form', () => {
    expect(keyOf(' {"b": [1.0, {"z": null, "é": "\\u00e9"}],\n"a": 1e2} ')).toBe(whole('{"a":100,"b":[1,{"z":null,"é":"é"}]}'));
  });

  test('of one path or several is an array of what stands there, in the order of the paths', () => {
    const data = '{"order": {"id": 7, "lines": [{"sku": "b"}, {"sku": "a"}]}, "at": {"b": 1, "a": 2}}';
    expect(keyOf(data, '$.order.id')).toBe('[7]');
    expect(keyOf(data, '$.at', '$.order.lines[-1].sku')).toBe('[{"a":2,"b":1},"a"]');
    expect(keyOf(data, '$.order.lines[?@.sku == "b"]')).toBe('[{"sku":"b"}]');
  });

  test('tells a text from a number, and several values from one that holds them', () => {
    expect(keyOf('{"a": 1}', '$.a')).not.toBe(keyOf('{"a": "1"}', '$.a'));
    expect(keyOf('{"a": [1, 2]}', '$.a')).not.toBe(keyOf('{"x": 1, "y": 2}', '$.x', '$.y'));
    expect(keyOf('{"x": "a", "y": "b\\",\\"c"}', '$.x', '$.y')).not.toBe(keyOf('{"x": "a\\",\\"b", "y": "c"}', '$.x', '$.y'));
  });

  test.each([
    ['9007199254740993', '9007199254740992'],
    ['-9007199254740993', '9007199254740993'],
    ['12345678901234567890', '12345678901234567891'],
    ['0.10000000000000001', '0.1'],
    ['12345678.1234567891', '12345678.1234567892'],
    ['1e400', '1e401'],
    ['1e400', '-1e400'],
    ['1e-400', '0'],
    ['1e400', '"Infinity"'],
    ['9007199254740993', '"9007199254740993"'],
    ['9007199254740993', '"9007199254740993e0"'],
    ['["\\u0000", 1e5]', '["\\u0000\\u0000", 100000]'],
    // The text that stands for the number in the key.
    ['9007199254740993', '"\\u00009007199254740993e0"'],
    ['"\\u0000"', '"\\u0000\\u0000"'],
    ['1e99999999999999999999', '1e99999999999999999998'],
  ])('is another one for %s than for %s', (one, other) => {
    expect(keyOf(`[${one}]`)).not.toBe(keyOf(`[${other}]`));
    expect(keyOf(`{"id": ${one}}`, '$.id')).not.toBe(keyOf(`{"id": ${other}}`, '$.id'));
  });

  test.each([
    ['1', '1.0'],
    ['1', '10E-1'],
    ['0', '-0.0e7'],
    ['9007199254740993', '9007199254740993.0'],
    ['9007199254740993', '900719925474099300e-2'],
    ['0.00000012345678901234567', '1.2345678901234567e-7'],
    ['1e400', '10e+399'],
    ['["\\u0000", 1e5]', '["\\u0000", 100000]'],
    ['1e23', '100000000000000000000000'],
  ])('is the same for %s as for %s', (one, other) => {
    expect(keyOf(one)).toBe(keyOf(other));
  });

  test('keeps a member named as one of the language, and finds no member that is not there', () => {
    expect(keyOf('{"__proto__": {"a": 1}}')).toBe(whole('{"__proto__":{"a":1}}'));
    expect(keyOf('{"__proto__": 9007199254740993}')).not.toBe(keyOf('{"__proto__": 9007199254740992}'));
    expect(keyOf('{"__proto__": 5}', '$.__proto__')).toBe('[5]');
    expect(keyOf('{"toString": 1e5, "toJSON": "x"}')).toBe(whole('{"toJSON":"x","toString":100000}'));
    for (const path of ['$.__proto__', '$.constructor', '$.id.length'])
      expect(() => keyOf('{"id": "x"}', path)).toThrow(error('KEY_MISSING', `the payload has nothing at ${path}`));
  });

  test('takes the last of members that share a name', () => {
    expect(keyOf('{"a": 1, "a": 2}')).toBe(whole('{"a":2}'));
    expect(keyOf('{"a": 9007199254740993, "a": 2}')).toBe(whole('{"a":2}'));
  });

  test('takes null for none', () => {
    expect(() => keyOf('{"a": {"b": null}}', '$.a.b')).toThrow(error('KEY_MISSING', 'the payload at $.a.b is null'));
    expect(() => keyOf('null')).toThrow(error('KEY_MISSING', 'the payload is null'));
  });

  test('takes one value a path, and says how many there are', () => {
    const many = 200_000;
    const data = JSON.stringify({ a: Array.from({ length: many }, (_, index) => index) });
    expect(() => keyOf('{"a": [1, 1]}', '$.a[*]')).toThrow(
      error('MALFORMED_MESSAGE', '$.a[*] finds 2 values in the payload; a key takes one'),
    );
    expect(() => keyOf(data, '$.a[*]')).toThrow(error('MALFORMED_MESSAGE', `$.a[*] finds ${many} values in the payload; a key takes one`));
  });

  test('reads past a byte order mark', () => {
    expect(keyOf('\ufeff{"a": 1}', '$.a')).toBe('[1]');
  });

  test.each(['', '$.', '$[', 'a', '$.a ', '$.a b', '$[?@.a ==]', '$[9007199254740992]', '$[?nosuch(@)]'])(
    'is not made of the path %j',
    (path) => {
      expect(() => payloadKey('$.ok', path)).toThrow(
        expect.objectContaining({
          code: 'INVALID_SETTINGS',
          message: expect.stringContaining(`the JSONPath ${JSON.stringify(path)} cannot be read: `),
        }),
      );
    },
  );
});

const nested = (levels: number, inside = '') => `${'['.repeat(levels)}${inside}${']'.repeat(levels)}`;

describe('payloadKey of a payload that cannot be read', () => {
  test.each<[string, string | Uint8Array, string[], string]>([
    ['nothing', '', ['$.a'], 'the payload is not JSON'],
    ['text', 'secret text', [], 'the payload is not JSON'],
    ['half of JSON', '{"a": "secret', ['$.a'], 'the payload is not JSON'],
    ['half of JSON with a long number', '{"a": 9007199254740993, "secret', ['$.a'], 'the payload is not JSON'],
    ['NaN', '{"a": NaN}', ['$.a'], 'the payload is not JSON'],
    ['other bytes than UTF-8', Buffer.from('7b2261223a22ff227d', 'hex'), ['$.a'], 'the payload is not UTF-8'],
    ['half of a character', '{"secret": {"a": "\\ud83d"}}', ['$.secret.a'], 'the payload at $.secret.a holds a lone surrogate'],
    ['half of a character in a name', '{"a": {"\\ude00": "secret"}}', ['$.a'], 'the payload at $.a holds a lone surrogate'],
    ['half of a character somewhere', '["secret", "\\ud83d"]', [], 'the payload holds a lone surrogate'],
    ['an empty text', '{"a": " "}', ['$.a'], 'the payload at $.a is empty'],
    ['many levels', nested(501), ['$[0]'], 'the payload is nested more than 500 levels deep'],
    ['a great many levels', nested(100_000), [], 'the payload is nested more than 500 levels deep'],
    ['a great many levels and a long number', nested(100_000, '1e400'), [], 'the payload is nested more than 500 levels deep'],
    ['many levels for a descent', nested(60, '{"a": "secret"}'), ['$..a'], 'the payload is nested too deeply for $..a'],
  ])('says so of %s, and holds nothing of it', (_, data, paths, message) => {
    let thrown: unknown;
    try {
      keyOf(data, ...paths);
    } catch (error) {
      thrown = error;
    }
    expect([errorCodeOf(thrown), textOf(thrown), (thrown as Error).cause]).toEqual(['MALFORMED_MESSAGE', message, undefined]);
  });

  test('half of a character elsewhere is no obstacle', () => {
    expect(keyOf('{"a": 1, "b": "\\ud83d"}', '$.a')).toBe('[1]');
  });

  test('five hundred levels are none either', () => {
    expect(keyOf(nested(500))).toBe(whole(nested(500)));
    expect(keyOf(nested(500, '1e2'))).toBe(whole(nested(500, '100')));
  });
});

describe('payloadFingerprint', () => {
  const fingerprint = (data: string, attributes = {}) => payloadFingerprint()(testMessage({ data, attributes }));

  test('is one for payloads that differ in white space or the order of members alone', () => {
    expect(fingerprint('{"b": 2, "a": 1}')).toBe(fingerprint('{"a":1,"b":2}'));
    expect(fingerprint('{"a":1}')).not.toBe(fingerprint('{"a":2}'));
    expect(fingerprint('{"a":1}', { kind: 'x' })).not.toBe(fingerprint('{"a":1}', { kind: 'y' }));
  });

  test.each(['no JSON', 'null', '""', '[1'])('takes %j as it is', (data) => {
    expect(fingerprint(data)).toBe(fingerprintOf(testMessage({ data })));
  });

  test('lets a publisher that writes its members in another order be a duplicate, and no conflict', async () => {
    const { worker } = dedupWorkers();
    const deliver = worker({ keyOf: payloadKey('$.id'), fingerprintOf: payloadFingerprint() })(counting());
    expect(await deliver(testMessage({ data: '{"id":1,"b":2}' }), context())).toEqual(ack('processed'));
    expect(await deliver(testMessage({ messageId: '2', data: '{ "b":2, "id":1 }' }), context())).toEqual(ack('duplicate'));
    expect(await deliver(testMessage({ messageId: '3', data: '{"id":1,"b":3}' }), context())).toMatchObject({ reason: 'conflict' });
  });
});
