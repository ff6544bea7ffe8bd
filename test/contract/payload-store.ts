import { describe, expect, test } from 'vitest';
import { payloadRef } from '../../src/shared/payload.ts';
import type { PayloadStore } from '../../src/shared/ports.ts';

/** Bytes that repeat nowhere near a chunk's length, so that no two chunks are alike. */
export function payloadOf(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

const keepMs = 60_000;

/** Every sentence of the port, asked of one store. */
export function payloadStoreContract(name: string, open: () => PayloadStore): void {
  describe(`PayloadStore: ${name}`, () => {
    test('what was never put is not there', async () => {
      expect(await open().get(payloadRef('ab', payloadOf(10)))).toBeUndefined();
    });

    test.each([0, 1, 999_999, 1_000_000, 1_000_001, 2_000_000, 4_000_001])('%i bytes come back as they were', async (length) => {
      const store = open();
      const bytes = payloadOf(length);
      const ref = payloadRef('ab', bytes);
      await store.put(ref, bytes, keepMs);
      const stored = await store.get(ref);
      expect(stored?.length).toBe(length);
      expect(bytes.equals(stored ?? Buffer.from('none'))).toBe(true);
    });

    test('10 MB come back byte for byte', async () => {
      const store = open();
      const bytes = payloadOf(10_000_000);
      const ref = payloadRef('ab', bytes);
      await store.put(ref, bytes, keepMs);
      expect(bytes.equals((await store.get(ref)) ?? Buffer.alloc(0))).toBe(true);
    });

    test('a part of a larger buffer is stored, and nothing around it', async () => {
      const store = open();
      const part = new Uint8Array(payloadOf(100).buffer, 3, 20);
      const ref = payloadRef('ab', part);
      await store.put(ref, part, keepMs);
      expect([...((await store.get(ref)) ?? [])]).toEqual([...part]);
    });

    test('what is changed after a put, or after a get, is not changed in the store', async () => {
      const store = open();
      const bytes = payloadOf(10);
      const ref = payloadRef('ab', bytes);
      await store.put(ref, bytes, keepMs);
      bytes.fill(0);
      (await store.get(ref))?.fill(0);
      expect([...((await store.get(ref)) ?? [])]).toEqual([...payloadOf(10)]);
    });

    test('the same bytes are put again without harm, also at once', async () => {
      const store = open();
      const bytes = payloadOf(2_000_001);
      const ref = payloadRef('ab', bytes);
      await Promise.all([1, 2, 3].map(() => store.put(ref, bytes, keepMs)));
      await store.put(ref, bytes, keepMs);
      expect(bytes.equals((await store.get(ref)) ?? Buffer.alloc(0))).toBe(true);
    });

    test.each<[string, Buffer]>([
      ['as many other bytes', payloadOf(1_000_001, 2)],
      ['fewer bytes', payloadOf(1_000_000)],
      ['more bytes', payloadOf(1_000_002)],
      ['more chunks', payloadOf(2_000_001)],
      ['no bytes', payloadOf(0)],
    ])('a reference that tells %s under the id gets none', async (_, others) => {
      const store = open();
      const bytes = payloadOf(1_000_001);
      await store.put(payloadRef('ab', bytes), bytes, keepMs);
      expect(await store.get(payloadRef('ab', others))).toBeUndefined();
      expect(await store.get(payloadRef('ab', bytes))).toBeDefined();
    });

    test.each([
      { bytes: 10, sha256: '0'.repeat(64) },
      { bytes: 9, sha256: payloadRef('ab', payloadOf(10)).sha256 },
      { bytes: 11, sha256: payloadRef('ab', payloadOf(10)).sha256 },
      { bytes: 10, sha256: payloadRef('ab', payloadOf(10)).sha256.toUpperCase() },
    ])('length and digest must both fit: %j gets none', async (told) => {
      const store = open();
      await store.put(payloadRef('ab', payloadOf(10)), payloadOf(10), keepMs);
      expect(await store.get({ id: 'ab', ...told })).toBeUndefined();
    });

    test('other bytes under an id take the place of those that were there', async () => {
      const store = open();
      const [first, second] = [payloadOf(2_000_001), payloadOf(1_000_001, 2)];
      await store.put(payloadRef('ab', first), first, keepMs);
      await store.put(payloadRef('ab', second), second, keepMs);
      expect(await store.get(payloadRef('ab', first))).toBeUndefined();
      expect(second.equals((await store.get(payloadRef('ab', second))) ?? Buffer.alloc(0))).toBe(true);
    });

    test('what is removed is there no more, and that of other ids is', async () => {
      const store = open();
      const bytes = payloadOf(1_000_001);
      const [one, other] = [payloadRef('ab', bytes), payloadRef('abc', bytes)];
      for (const ref of [one, other]) await store.put(ref, bytes, keepMs);
      await store.remove(one);
      expect(await store.get(one)).toBeUndefined();
      expect((await store.get(other))?.length).toBe(1_000_001);
    });

    test('what is not there is removed without harm, and may be put again', async () => {
      const store = open();
      const bytes = payloadOf(10);
      const ref = payloadRef('ab', bytes);
      await store.remove(ref);
      await store.put(ref, bytes, keepMs);
      await store.remove(ref);
      await store.remove(ref);
      await store.put(ref, bytes, keepMs);
      expect([...((await store.get(ref)) ?? [])]).toEqual([...bytes]);
    });

    test.each([
      ['', 'the id of a payload is empty'],
      ['a\ud800', 'the id of a payload holds a lone surrogate'],
      ['a'.repeat(1_499), 'a document id of 1501 bytes is needed; at most 1500 are allowed'],
    ])('the id %j is refused', async (id, message) => {
      const store = open();
      const ref = payloadRef(id, payloadOf(10));
      const refused = { code: 'MALFORMED_MESSAGE', message };
      await expect(store.put(ref, payloadOf(10), keepMs)).rejects.toMatchObject(refused);
      await expect(store.get(ref)).rejects.toMatchObject(refused);
      await expect(store.remove(ref)).rejects.toMatchObject(refused);
    });

    test('the longest id is taken', async () => {
      const store = open();
      const ref = payloadRef('a'.repeat(1_498), payloadOf(10));
      await store.put(ref, payloadOf(10), keepMs);
      expect(await store.get(ref)).toBeDefined();
    });
  });
}
