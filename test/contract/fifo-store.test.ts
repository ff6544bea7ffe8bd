import { describe, expect, test } from 'vitest';
import { firestoreFifoStore } from '../../src/shared/adapters/firestore-fifo.ts';
import { memoryFifoStore } from '../../src/shared/adapters/memory-fifo.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { type Cursor, freshCursor } from '../../src/shared/fifo/cursor.ts';
import { cursorKeyOf, type FifoStore, type Place, parkedFor } from '../../src/shared/fifo/store.ts';
import { hash } from '../../src/shared/names.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { secondFirestore } from '../support/second-firestore.ts';

const databases = await firestoreDatabases();
const second = secondFirestore(databases, databases.open().projectId);
let opened = 0;
const blocked = { seq: 8, reason: 'attempts', sinceMs: 1_767_225_600_000 } as const;
const cursor = (rev: number, changes: Partial<Cursor> = {}): Cursor => ({
  ...freshCursor(100, 1),
  ...{ rev, last: 7, runId: `run-${rev}`, by: 8, started: 8, leaseMs: 500, attempts: 2 },
  ...changes,
});
const key = cursorKeyOf('c', 's');
const at = (seq: number, changes: Partial<Place> = {}): Place => ({ consumer: 'c', stream: 's', epoch: 100, seq, ...changes });
const message = testMessage({ messageId: 'm', data: Buffer.from([0, 255, 128]), attributes: { 'ptk-key': 'k', at: 'noon' } });
const parked = (place: Place, parkedAtMs = 1_000) => parkedFor(place, message, 'early', parkedAtMs, 60_000);

describe.each<[string, () => FifoStore]>([
  ['memory', () => memoryFifoStore(system.clock)],
  ['Firestore', () => firestoreFifoStore(databases.open().client(), system.clock)],
  ['Firestore, by a second copy of its client', () => firestoreFifoStore(second.db, system.clock, `second-${++opened}-`)],
])('FifoStore in %s', (_, open) => {
  test('a parked message comes back as it was, beside the cursor', async () => {
    const store = open();
    expect(await store.look(key, at(8))).toEqual({ cursor: undefined, parked: undefined });
    await store.put(key, cursor(1, { blocked }), 'absent', 'forever');
    await store.park(parked(at(8)));
    const seen = await store.look(key, at(8));
    expect(seen.cursor?.record).toEqual(cursor(1, { blocked }));
    expect({ ...seen.parked, data: [...(seen.parked?.data ?? [])] }).toEqual({ ...message, data: [0, 255, 128] });
  });

  test('is parked once: a second copy changes nothing', async () => {
    const store = open();
    await store.park(parked(at(8), 1_000));
    await store.park(parked(at(8), 2_000));
    expect(await store.lowest('c', 's')).toMatchObject({ ...at(8), parkedAtMs: 1_000 });
  });

  test('the cursor moves and the park changes in one commit, or neither', async () => {
    const store = open();
    const first = await store.put(key, cursor(1), 'absent', 'forever');
    await store.park(parked(at(8)));
    const stale = await store.beside({ unpark: [at(8)] }).put(key, cursor(2), 'absent', 'forever');
    expect(stale).toMatchObject({ conflict: { record: { rev: 1 } } });
    expect((await store.look(key, at(8))).parked).toBeDefined();
    expect(await store.beside({ unpark: [], park: parked(at(9)) }).put(key, cursor(2), 'absent', 'forever')).toHaveProperty('conflict');
    expect((await store.look(key, at(9))).parked).toBeUndefined();
    if (!('version' in first)) throw new Error('the key was taken');
    expect(await store.beside({ unpark: [at(8)] }).put(key, cursor(2, { last: 8 }), first.version, 'forever')).toHaveProperty('version');
    expect(await store.look(key, at(8))).toMatchObject({ cursor: { record: { last: 8, rev: 2 } }, parked: undefined });
  });

  test('reads ahead without a gap, of one epoch, and no more than asked', async () => {
    const store = open();
    const bodies = async (from: number, limit = 9) => (await store.ahead(at(from), limit)).map(({ messageId }) => messageId);
    for (const seq of [8, 9, 10, 12]) await store.park({ ...parked(at(seq)), message: { ...message, messageId: `m${seq}` } });
    await store.park(parked(at(11, { epoch: 99 })));
    await store.park(parked(at(11, { stream: 't' })));
    expect(await bodies(8)).toEqual(['m8', 'm9', 'm10']);
    expect(await bodies(9, 1)).toEqual(['m9']);
    expect([await bodies(7), await bodies(11), await bodies(12)]).toEqual([[], [], ['m12']]);
    expect([await store.waiting('c', 's'), await store.waiting('c', 't'), await store.waiting('d', 's')]).toEqual([5, 1, 0]);
  });

  test('many messages are taken out beside one write', async () => {
    const store = open();
    for (const seq of [8, 9, 10]) await store.park(parked(at(seq)));
    expect(await store.beside({ unpark: [at(8), at(9), at(11)] }).put(key, cursor(1), 'absent', 'forever')).toHaveProperty('version');
    expect(await store.lowest('c', 's')).toMatchObject(at(10));
  });

  test('tells the streams of a consumer that stand still', async () => {
    const store = open();
    const put = (consumer: string, stream: string, changes: Partial<Cursor>) =>
      store.put(cursorKeyOf(consumer, stream), cursor(1, changes), 'absent', 'forever');
    await Promise.all([put('c', 'a/b.c', { blocked }), put('c', 's', {}), put('d', 's', { blocked })]);
    await Promise.all([
      store.park(parked(at(8, { stream: 'a/b.c' }))),
      store.park(parked(at(8))),
      store.park(parked(at(8, { consumer: 'd' }))),
    ]);
    const found = await store.blockedStreams('c');
    expect(found.map(({ stream, cursor: { record } }) => [stream, record.blocked])).toEqual([['a/b.c', blocked]]);
  });

  test('what is not there is taken out and postponed without harm', async () => {
    const store = open();
    await store.unpark(at(8));
    await store.postpone([at(8)], 5_000);
    expect(await store.lowest('c', 's')).toBeUndefined();
  });

  test('tells what is due, of one consumer, and after it was looked at no more', async () => {
    const store = open();
    await store.park(parked(at(9), 2_000));
    await store.park(parked(at(8, { stream: 't' }), 1_000));
    await store.park(parked(at(8, { consumer: 'd' }), 1_000));
    expect(await store.due('c', 60_999)).toEqual([]);
    expect((await store.due('c', 61_000)).map(({ stream }) => stream)).toEqual(['t']);
    expect((await store.due('c', 62_000)).map(({ stream, seq }) => [stream, seq])).toEqual([
      ['t', 8],
      ['s', 9],
    ]);
    await store.postpone([at(8, { stream: 't' })], 70_000);
    expect((await store.due('c', 69_999)).map(({ stream }) => stream)).toEqual(['s']);
  });

  test('the lowest number counts, the older epoch first', async () => {
    const store = open();
    for (const place of [at(10), at(9), at(11, { epoch: 99 })]) await store.park(parked(place));
    expect(await store.lowest('c', 's')).toMatchObject(at(11, { epoch: 99 }));
    await store.unpark(at(11, { epoch: 99 }));
    expect(await store.lowest('c', 's')).toMatchObject(at(9));
  });
});

describe('ptk-parked in Firestore', () => {
  test('is as the wire contract says', async () => {
    const db = databases.open().client();
    const store = firestoreFifoStore(db, system.clock, 'x-');
    await store.park(parked(at(8, { consumer: 'a/b', stream: 'o.1' })));
    const [document] = (await db.collection('x-ptk-parked').get()).docs;
    expect(document?.id).toBe(`${hash('a%2Fb~o%2E1')}~100~0000000000000008`);
    expect(document?.data()).toMatchObject({
      consumer: 'a/b',
      stream: 'o.1',
      epoch: 100,
      seq: 8,
      reason: 'early',
      shard: expect.any(Number),
    });
    expect(document?.get('parkedAt').toMillis()).toBe(1_000);
    expect(document?.get('dueAt').toMillis()).toBe(61_000);
  });

  test('a block is stored with its instant', async () => {
    const db = databases.open().client();
    const store = firestoreFifoStore(db, system.clock);
    await store.put(key, cursor(1, { blocked }), 'absent', 'forever');
    const stored = (await db.doc(`ptk-cursors/${key}`).get()).get('blocked');
    expect({ ...stored, since: stored.since.toMillis() }).toEqual({ seq: 8, reason: 'attempts', since: blocked.sinceMs });
  });

  test('a message that a document cannot hold is refused before it is sent', async () => {
    const store = firestoreFifoStore(databases.open().client(), system.clock);
    const large = parkedFor(at(8), testMessage({ data: Buffer.alloc(1_000_001) }), 'early', 1_000, 60_000);
    await expect(store.park(large)).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE' });
    await expect(store.beside({ unpark: [], park: large }).put(key, cursor(1), 'absent', 'forever')).rejects.toMatchObject({
      code: 'MESSAGE_TOO_LARGE',
    });
  });
});
