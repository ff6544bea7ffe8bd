import { describe, expect, test } from 'vitest';
import { documentId, encodeName, hash } from '../../src/shared/names.ts';

const malformed = (reason: RegExp) => expect.objectContaining({ code: 'MALFORMED_MESSAGE', message: expect.stringMatching(reason) });

describe('hash', () => {
  test.each([
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
    ['é', '4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c'],
  ])('of %s is the SHA-256 of its UTF-8 bytes in lower-case hex', (text, digest) => {
    expect(hash(text)).toBe(digest);
  });
});

describe('encodeName', () => {
  test.each([
    ['orders-7', 'orders-7'],
    ['a/b c', 'a%2Fb%20c'],
    ['.', '%2E'],
    ['..', '%2E%2E'],
    ['__x__', '%5F%5Fx%5F%5F'],
    ['a~b', 'a%7Eb'],
    ['100%', '100%25'],
    ['é', '%C3%A9'],
    ['😀', '%F0%9F%98%80'],
  ])('writes %s as %s', (name, encoded) => {
    expect(encodeName(name, 'name')).toBe(encoded);
  });

  test('refuses an empty name and half of a character, and says which name', () => {
    expect(() => encodeName('', 'the stream')).toThrow(malformed(/^the stream is empty$/));
    expect(() => encodeName('\udc00', 'the stream')).toThrow(malformed(/^the stream holds a lone surrogate$/));
  });
});

describe('documentId', () => {
  test('joins its parts so that no two lists of names meet', () => {
    expect(documentId(encodeName('a~b', 'name'), encodeName('c', 'name'))).toBe('a%7Eb~c');
    expect(documentId(encodeName('a', 'name'), encodeName('b~c', 'name'))).toBe('a~b%7Ec');
  });

  test('may have 1,500 bytes and not one more', () => {
    expect(documentId('x'.repeat(1_000), 'y'.repeat(499))).toHaveLength(1_500);
    expect(() => documentId('x'.repeat(1_000), 'y'.repeat(500))).toThrow(malformed(/1501 bytes is needed; at most 1500/));
  });
});
