import { describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { firestoreDelayLedger } from '../../src/shared/adapters/firestore-delays.ts';
import { memoryDelayLedger } from '../../src/shared/adapters/memory-delays.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { claimed, created, type DelayRecord, endedKeepMs, fired, ledgerKeyOf, recurring } from '../../src/shared/delay/ledger.ts';
import type { DelayLedger, Page } from '../../src/shared/delay/store.ts';
import { shardOf } from '../../src/shared/names.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { secondFirestore } from '../support/second-firestore.ts';

const databases = await firestoreDatabases();
const second = secondFirestore(databases, databases.open().projectId);
let opened = 0;
const dueAtMs = Date.UTC(2026, 6, 1);

/** An entry as a message schedules it. */
function entry(id: string, changes: Partial<DelayRecord> = {}): DelayRecord {
  const wanted = {
    ...{ id, dueAtMs, target: 'final', key: 'k', queue: 'q', shard: shardOf(id), incarnation: 'i', opId: 'o' },
    carried: { message: { data: Buffer.from([0, 255, 128]), attributes: { a: 'b' }, orderingKey: 'o' } },
    seqRef: { stream: 's', epoch: 100, sequence: 7 },
    instr: { publishTimeMs: 1_767_225_600_123, messageId: '12', key: 'instruction' },
    recurrence: null,
  };
  return { ...created(wanted), ...changes };
}

/** Bytes as numbers: the stores give back buffers or arrays. */
const plain = (record: DelayRecord | undefined) =>
  record && { ...record, message: record.message && { ...record.message, data: [...record.message.data] } };

async function put(ledger: DelayLedger, record: DelayRecord): Promise<string> {
  const written = await ledger.put(ledgerKeyOf(record.id), record, 'absent', 'forever');
  return 'version' in written ? written.version : expect.fail('the key was taken');
}

describe.each<[string, () => DelayLedger]>([
  ['memory', () => memoryDelayLedger(system.clock)],
  ['Firestore', () => firestoreDelayLedger(databases.open().client(), system.clock)],
  ['Firestore, by a second copy of its client', () => firestoreDelayLedger(second.db, system.clock, `second-${++opened}-`)],
])('DelayLedger in %s', (_, open) => {
  test.each<[string, DelayRecord]>([
    ['one with a message', entry('order/7')],
    [
      'one whose message has no data, attributes or key',
      entry('bare', { message: { data: Buffer.alloc(0), attributes: {} }, seqRef: null }),
    ],
    [
      'one with a payload',
      entry('large', { message: null, payload: { id: 'ab', bytes: 10_000_000, sha256: 'c'.repeat(64) }, recurrence: { everyMs: 60_000 } }),
    ],
    ['one with a pattern', entry('cron', { recurrence: { cron: '0 9 * * 1-5', timeZone: 'Europe/Berlin' }, messageId: '9' })],
    [
      'one that owes numbers and has seen others',
      entry('owing', {
        state: 'cancelled',
        owed: [{ target: 'final', key: 'k', seqRef: { stream: 's', epoch: 100, sequence: 7 }, reason: 'cancelled' }],
        seen: ['first', 'second'],
        message: null,
      }),
    ],
    ['one that runs', claimed(entry('running'), 'run', 60_000)],
  ])('%s comes back as it was', async (_, record) => {
    const ledger = open();
    await put(ledger, record);
    expect(plain((await ledger.get(ledgerKeyOf(record.id)))?.record)).toEqual(plain(record));
  });

  test.each([
    ['dots, slashes and blanks in its name', 'a.b/c d'],
    ['a backtick in its name', '`a`'],
    ['a name that only begins as a reserved one', '__a'],
    ['the name of an instant of ours', 'publishTime'],
    ['the name of our time to live', 'expireAt'],
    ['a name of 256 bytes', 'n'.repeat(256)],
  ])('an attribute with %s comes back, whatever it holds', async (_, name) => {
    for (const value of ['', '1767225600000', 'ü'.repeat(512)]) {
      const ledger = open();
      const record = entry('odd', { message: { data: Buffer.alloc(1), attributes: { [name]: value, other: '' } } });
      await put(ledger, record);
      expect((await ledger.look(ledgerKeyOf('odd'))).stored?.record.message?.attributes).toEqual({ [name]: value, other: '' });
    }
  });

  test('a look tells the store’s clock, whether something is there or not', async () => {
    const ledger = open();
    const beforeMs = Date.now();
    const absent = await ledger.look(ledgerKeyOf('none'));
    expect(absent).toEqual({ nowMs: expect.any(Number), stored: undefined });
    await put(ledger, entry('some'));
    const there = await ledger.look(ledgerKeyOf('some'));
    expect(there.stored?.record.id).toBe('some');
    expect(there.stored?.nowMs).toBe(there.nowMs);
    expect(there.stored?.writtenAtMs).toBeLessThanOrEqual(there.nowMs);
    for (const { nowMs } of [absent, there]) expect(Math.abs(nowMs - beforeMs)).toBeLessThan(10_000);
  });

  test('entries come by state, the earliest due first and then by key, page after page over all shards', async () => {
    const ledger = open();
    const ids = Array.from({ length: 40 }, (_, index) => `id-${index}`);
    expect(new Set(ids.map(shardOf)).size).toBeGreaterThan(12);
    const records = ids.map((id, index) => entry(id, { dueAtMs: dueAtMs + (index % 4) }));
    for (const record of records) await put(ledger, record);
    await put(ledger, entry('cancelled', { state: 'cancelled', dueAtMs: dueAtMs - 1 }));
    await put(ledger, claimed(entry('releasing', { dueAtMs: dueAtMs - 2 }), 'run', 60_000));
    const keyed = records.map((record) => ({ dueAtMs: record.dueAtMs, key: ledgerKeyOf(record.id) }));
    const expected = keyed.sort((a, b) => a.dueAtMs - b.dueAtMs || (a.key < b.key ? -1 : 1));
    const found: Page[] = [];
    for (let after: Page | undefined; ; ) {
      const page = await ledger.inState('pending', 7, after);
      found.push(...page.map(({ key, stored }) => ({ dueAtMs: stored.record.dueAtMs, key })));
      after = found.at(-1);
      if (page.length < 7) break;
    }
    expect(found).toEqual(expected);
    expect((await ledger.inState('cancelled', 7)).map(({ stored }) => stored.record.id)).toEqual(['cancelled']);
    expect(await ledger.inState('fired', 7)).toEqual([]);
    expect(await ledger.inState('pending', 7, expected.at(-1))).toEqual([]);
  });

  test('a listed entry is stored as it is read by its key', async () => {
    const ledger = open();
    await put(ledger, entry('one'));
    const [listed] = await ledger.inState('pending', 10);
    const { nowMs: _, ...stored } = (await ledger.get(ledgerKeyOf('one'))) ?? expect.fail();
    expect(listed?.key).toBe(ledgerKeyOf('one'));
    expect(listed?.stored).toMatchObject(stored);
  });

  test('counts entries by state, and those that are due before an instant', async () => {
    const ledger = open();
    for (const [index, id] of ['a', 'b', 'c'].entries()) await put(ledger, entry(id, { dueAtMs: dueAtMs + index }));
    await put(ledger, entry('d', { state: 'cancelled' }));
    const counts = [ledger.count('pending'), ledger.count('cancelled'), ledger.count('fired')];
    expect(await Promise.all(counts)).toEqual([3, 1, 0]);
    const before = [0, 1, 2, 3].map((ms) => ledger.count('pending', dueAtMs + ms));
    expect(await Promise.all(before)).toEqual([0, 1, 2, 3]);
  });
});

describe('ptk-delays in Firestore', () => {
  test('is as the wire contract says', async () => {
    const db = databases.open().client();
    await put(firestoreDelayLedger(db, system.clock, 'x-'), entry('order/7', { recurrence: { everyMs: 60_000 } }));
    const [document] = (await db.collection('x-ptk-delays').get()).docs;
    expect(document?.id).toBe(ledgerKeyOf('order/7'));
    const { dueAt, armedAt, instr, message, ...fields } = document?.data() ?? {};
    expect([dueAt, armedAt, instr.publishTime].map((instant) => instant.toMillis())).toEqual([
      dueAtMs,
      1_767_225_600_123,
      1_767_225_600_123,
    ]);
    expect(instr).toMatchObject({ messageId: '12', key: 'instruction' });
    expect(message).toEqual({ data: Buffer.from([0, 255, 128]), attributes: { a: 'b' }, orderingKey: 'o' });
    expect(fields).toEqual({
      ...{ v: 1, id: 'order/7', state: 'pending', generation: 1, incarnation: 'i', target: 'final', key: 'k', queue: 'q', opId: 'o' },
      ...{ seqRef: { stream: 's', epoch: 100, sequence: 7 }, seen: [], owed: [], payload: null, recurrence: { everyMs: 60_000 } },
      ...{ rev: 1, runId: '', leaseMs: 0, shard: shardOf('order/7'), messageId: null },
    });
  });

  test('what has ended goes when its time is over, and what is pending again after it had fired stays', async () => {
    const time = manualTime(Date.now());
    const db = databases.open().client();
    const ledger = firestoreDelayLedger(db, time);
    const kept = async (id: string) => (await db.doc(`ptk-delays/${ledgerKeyOf(id)}`).get()).get('expireAt') ?? 'for ever';
    const versions = new Map<string, string>();
    for (const id of ['once', 'again']) versions.set(id, await put(ledger, entry(id)));
    const write = async (record: DelayRecord, keepMs: number | 'forever') => {
      const written = await ledger.put(ledgerKeyOf(record.id), record, versions.get(record.id) ?? 'absent', keepMs);
      versions.set(record.id, 'version' in written ? written.version : expect.fail('the version is another'));
    };
    for (const id of ['once', 'again']) await write(fired(entry(id), '5'), endedKeepMs);
    const goesAtMs = time.nowMs() + 40 * 86_400_000;
    for (const id of ['once', 'again']) expect((await kept(id)).toMillis()).toBe(goesAtMs);
    await write(recurring(entry('again', { rev: 2 }), '5', dueAtMs + 1), 'forever');
    expect(await kept('again')).toBe('for ever');
    expect((await ledger.get(ledgerKeyOf('again')))?.record).toMatchObject({ state: 'pending', generation: 2, dueAtMs: dueAtMs + 1 });
    expect((await kept('once')).toMillis()).toBe(goesAtMs);
  });
});
