import { isDeepStrictEqual } from 'node:util';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attributeKey, payloadKey } from '../../src/shared/adapters/keys.ts';
import { hash } from '../../src/shared/names.ts';
import { testMessage } from '../../src/testing/doubles.ts';

/** In a list, since a text that is empty, and null, are refused as keys. */
const keyOf = (text: string) => payloadKey()(testMessage({ data: `[${text}]` }));
const jsonValue = fc.jsonValue({ stringUnit: 'binary' });

/** The value as JSON with its members in another order, and white space. */
function shuffled(value: unknown, gen: fc.GeneratorValue): string {
  if (Array.isArray(value)) return `[ ${value.map((element) => shuffled(element, gen)).join(' ,')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value);
  const inOrder = gen(fc.shuffledSubarray<[string, unknown]>, members, { minLength: members.length });
  return `{${inOrder.map(([name, member]) => `\n${JSON.stringify(name)}: ${shuffled(member, gen)}`).join(',')} }`;
}

describe('payloadKey', () => {
  test('does not depend on the order of members', () => {
    fc.assert(
      fc.property(jsonValue, fc.gen(), (value, gen) => {
        expect(keyOf(shuffled(value, gen))).toBe(keyOf(JSON.stringify(value)));
      }),
    );
  });

  test('differs where the values differ', () => {
    // Of few letters, so that equal values come up too.
    const few = fc.jsonValue({ stringUnit: fc.constantFrom('a', ',', '"', '\0'), maxDepth: 2 });
    const sameValue = (one: unknown, other: unknown) =>
      isDeepStrictEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)));
    fc.assert(
      fc.property(few, few, (one, other) => {
        expect(keyOf(JSON.stringify(one)) === keyOf(JSON.stringify(other))).toBe(sameValue(one, other));
      }),
      { numRuns: 1_000 },
    );
  });

  test('is RFC 8785 where doubles hold the numbers, and no text begins with a zero byte', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const text = JSON.stringify(value);
        fc.pre(!text.includes('"\\u0000'));
        expect(keyOf(text)).toBe(`sha256:${hash(canonicalize([value]) ?? '')}`);
      }),
    );
  });

  test('takes numbers for the same where their digits say so, and only there', () => {
    const written = fc.record({ digits: fc.bigInt(9_007_199_254_740_980n, 9_007_199_254_741_000n), zeros: fc.nat(3), point: fc.nat(3) });
    type Written = { readonly digits: bigint; readonly zeros: number; readonly point: number };
    const text = ({ digits, zeros, point }: Written) => `${digits}${'0'.repeat(zeros)}e-${point}`;
    const thousandfold = ({ digits, zeros, point }: Written) => digits * 10n ** BigInt(zeros + 3 - point);
    fc.assert(
      fc.property(written, written, (one, other) => {
        expect(keyOf(text(one)) === keyOf(text(other))).toBe(thousandfold(one) === thousandfold(other));
      }),
      { numRuns: 2_000 },
    );
  });
});

test('attributeKey differs where a value differs', () => {
  const value = fc.string({ unit: fc.constantFrom('a', ',', '"', '\\', '[', ']'), minLength: 1, maxLength: 4 });
  const pair = fc.record({ x: value, y: value });
  fc.assert(
    fc.property(pair, pair, (one, other) => {
      const key = attributeKey('x', 'y');
      expect(key(testMessage({ attributes: one })) === key(testMessage({ attributes: other }))).toBe(
        one.x === other.x && one.y === other.y,
      );
    }),
    { numRuns: 1_000 },
  );
});
