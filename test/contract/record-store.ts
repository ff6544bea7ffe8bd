import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { dedupRecord } from '../support/dedup-records.ts';

export type Note = DedupRecord & { readonly nested: { readonly atMs: number } | null };

export type StoreUnderTest = {
  readonly store: RecordStore<Note>;
  /** Moves the store's clock, or waits. */
  pass(ms: number): Promise<void>;
  close(): Promise<void>;
};

export const note = (runId: string, rev = 1, result = 'x', changes: Partial<Note> = {}): Note => ({
  ...dedupRecord({ runId, rev, result, firstSeenAtMs: 1_769_853_000_123 }),
  nested: { atMs: 7 },
  ...changes,
});

/** Every sentence of the port, asked of one store. */
export function recordStoreContract(name: string, create: () => Promise<StoreUnderTest>): void {
  describe(`RecordStore: ${name}`, () => {
    let under: StoreUnderTest;
    let keys = 0;
    const newKey = () => `consumer~key-${++keys}-${name}`;
    beforeAll(async () => {
      under = await create();
    });
    afterAll(() => under.close());

    test('a key that was never written holds nothing', async () => {
      expect(await under.store.get(newKey())).toBeUndefined();
    });

    test('what is written reads back as it was, instants to the millisecond', async () => {
      const key = newKey();
      await under.store.put(key, note('a', 1, 'grüße\n"quoted"'), 'absent', 60_000);
      expect((await under.store.get(key))?.record).toEqual(note('a', 1, 'grüße\n"quoted"'));
    });

    test('a put where something is stored is refused and told what', async () => {
      const key = newKey();
      const first = await under.store.put(key, note('a'), 'absent', 60_000);
      const second = await under.store.put(key, note('b'), 'absent', 60_000);
      expect(second).toMatchObject({ conflict: { record: note('a'), version: (first as { version: string }).version } });
    });

    test('a put with the version read replaces the record, and the version read before is over', async () => {
      const key = newKey();
      const first = (await under.store.put(key, note('a'), 'absent', 60_000)) as { version: string };
      const second = (await under.store.put(key, note('a', 2, 'new'), first.version, 60_000)) as { version: string };
      expect(second.version).toBeDefined();
      expect(await under.store.put(key, note('c', 2), first.version, 60_000)).toMatchObject({ conflict: { record: note('a', 2, 'new') } });
      expect((await under.store.get(key))?.version).toBe(second.version);
    });

    test('a put with a version where nothing is stored is refused and told nothing', async () => {
      const key = newKey();
      const { version } = (await under.store.put(newKey(), note('a'), 'absent', 60_000)) as { version: string };
      expect(await under.store.put(key, note('a', 2), version, 60_000)).toEqual({ conflict: undefined });
    });

    test('of 50 puts at once where nothing is stored, one wins', async () => {
      const key = newKey();
      const results = await Promise.all(
        Array.from({ length: 50 }, (_, index) => under.store.put(key, note(`run-${index}`), 'absent', 60_000)),
      );
      const winners = results.flatMap((result, index) => ('version' in result ? [index] : []));
      expect(winners).toHaveLength(1);
      expect((await under.store.get(key))?.record.runId).toBe(`run-${winners[0]}`);
    });

    test('loses no update when 20 writers raise one record at once', async () => {
      const key = newKey();
      await under.store.put(key, note('start', 0), 'absent', 'forever');
      const raise = async (writer: number) => {
        for (;;) {
          const before = await under.store.get(key);
          if (!before) throw new Error('the record is gone');
          const result = await under.store.put(key, note(`w${writer}`, before.record.rev + 1), before.version, 'forever');
          if ('version' in result) return;
        }
      };
      await Promise.all(Array.from({ length: 20 }, (_, writer) => raise(writer)));
      expect((await under.store.get(key))?.record.rev).toBe(20);
    });

    test.each([60_000, 'forever'] as const)("tells the age of what is kept for %s ms by the store's own clock", async (keepMs) => {
      const key = newKey();
      await under.store.put(key, note('a'), 'absent', keepMs);
      await under.pass(120);
      const stored = await under.store.get(key);
      const ageMs = (stored?.nowMs ?? 0) - (stored?.writtenAtMs ?? 0);
      expect(ageMs).toBeGreaterThanOrEqual(119);
      expect(ageMs).toBeLessThan(5_000);
    });

    test('a write that changes only rev begins the age anew', async () => {
      const key = newKey();
      const first = (await under.store.put(key, note('a'), 'absent', 60_000)) as { version: string };
      await under.pass(120);
      await under.store.put(key, note('a', 2), first.version, 60_000);
      const stored = await under.store.get(key);
      expect((stored?.nowMs ?? 0) - (stored?.writtenAtMs ?? 0)).toBeLessThan(119);
    });

    test('keys that differ only in case or in a separator are different', async () => {
      const key = newKey();
      await under.store.put(key, note('a'), 'absent', 60_000);
      expect(await under.store.get(key.toUpperCase())).toBeUndefined();
      expect(await under.store.get(`${key}~`)).toBeUndefined();
    });
  });
}
