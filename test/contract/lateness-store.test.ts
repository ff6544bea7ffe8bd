import { readFileSync } from 'node:fs';
import type { Firestore } from '@google-cloud/firestore';
import { afterAll, describe, expect, test } from 'vitest';
import { checkIndexes } from '../../src/emulator/firestore/index-definitions.ts';
import { startEmulator } from '../../src/emulator/server.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { firestoreLatenessStore } from '../../src/shared/adapters/firestore-lateness.ts';
import { memoryLatenessStore } from '../../src/shared/adapters/memory-lateness.ts';
import type { LatenessStore } from '../../src/shared/delay/store.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { secondFirestore } from '../support/second-firestore.ts';
import { firestoreClient } from '../support/targets.ts';

const databases = await firestoreDatabases();
const second = secondFirestore(databases, databases.open().projectId);
let opened = 0;
const five = Date.parse('2026-01-01T05:00:00Z');
const six = five + 3_600_000;

describe.each<[string, () => LatenessStore]>([
  ['memory', memoryLatenessStore],
  ['Firestore', () => firestoreLatenessStore(databases.open().client())],
  ['Firestore, by a second copy of its client', () => firestoreLatenessStore(second.db, `second-${++opened}-`)],
])('LatenessStore in %s', (_, open) => {
  test('holds nothing at first', async () => {
    expect(await open().since(0)).toEqual([]);
  });

  test('gives back the counts of each counter and hour', async () => {
    const store = open();
    await store.put({ counter: 'a-1', hourAtMs: five, counts: { 1: 3, 500: 1 } });
    await store.put({ counter: 'a-2', hourAtMs: five, counts: { Infinity: 1 } });
    await store.put({ counter: 'a-1', hourAtMs: six, counts: { 2: 9_007_199_254_740_991 } });
    const found = await store.since(five);
    expect(found).toHaveLength(3);
    expect(found).toEqual(expect.arrayContaining([{ 1: 3, 500: 1 }, { Infinity: 1 }, { 2: 9_007_199_254_740_991 }]));
  });

  test('counts of the same hour take the place of those before', async () => {
    const store = open();
    await store.put({ counter: 'a', hourAtMs: five, counts: { 1: 3, 500: 1 } });
    await store.put({ counter: 'a', hourAtMs: five, counts: { 1: 4 } });
    expect(await store.since(0)).toEqual([{ 1: 4 }]);
  });

  test.each([
    [five, 2],
    [five + 1, 1],
    [six, 1],
    [six + 1, 0],
  ])('since %d are the hours that begin then or later: %i', async (fromMs, hours) => {
    const store = open();
    for (const hourAtMs of [five, six]) await store.put({ counter: 'a', hourAtMs, counts: { 1: 1 } });
    expect(await store.since(fromMs)).toHaveLength(hours);
  });
});

describe('ptk-lateness in Firestore', () => {
  test('is as the wire contract says', async () => {
    const db = databases.open().client();
    await firestoreLatenessStore(db, 'x-').put({ counter: 'a.1', hourAtMs: five, counts: { 20: 2 } });
    const { docs } = await db.collection('x-ptk-lateness').get();
    expect(docs.map(({ id }) => id)).toEqual(['a%2E1~2026-01-01T05']);
    const { hourAt, expireAt, ...fields } = docs[0]?.data() ?? {};
    expect(fields).toEqual({ counts: { 20: 2 } });
    expect([hourAt.toDate().toISOString(), expireAt.toDate().toISOString()]).toEqual([
      '2026-01-01T05:00:00.000Z',
      '2026-01-09T05:00:00.000Z',
    ]);
  });

  test('a document that somebody edited spoils no other', async () => {
    const db = databases.open().client();
    const store = firestoreLatenessStore(db);
    await store.put({ counter: 'a', hourAtMs: five, counts: { 20: 2 } });
    await db.doc('ptk-lateness/b').set({ hourAt: new Date(five), counts: 'many' });
    await db.doc('ptk-lateness/c').set({ hourAt: new Date(five), counts: { 20: 'two', 50: 1 } });
    await db.doc('ptk-lateness/d').set({ counts: { 20: 2 } });
    expect((await store.since(0)).filter((counts) => Object.keys(counts).length > 0)).toEqual([{ 20: 2 }, { 50: 1 }]);
  });

  test('a store that is down is STORE_UNAVAILABLE', async () => {
    const down = async () => {
      throw Object.assign(new Error('refused'), { code: 14 });
    };
    const collection = () => ({ doc: () => ({ set: down }), where: () => ({ get: down }) });
    const store = firestoreLatenessStore({ collection } as unknown as Firestore);
    const unavailable = { code: 'STORE_UNAVAILABLE', message: 'Firestore: refused' };
    await expect(store.put({ counter: 'a', hourAtMs: five, counts: {} })).rejects.toMatchObject(unavailable);
    await expect(store.since(0)).rejects.toMatchObject(unavailable);
  });
});

describe('terraform/firestore.indexes.json', () => {
  const file = new URL('../../terraform/firestore.indexes.json', import.meta.url);
  const shipped = checkIndexes(JSON.parse(readFileSync(file, 'utf8')));
  const closing: (() => Promise<void>)[] = [];
  afterAll(() => Promise.all(closing.map((close) => close())));

  async function databaseWith({ indexes, fieldOverrides = [] }: typeof shipped, without: (fieldPath: string) => boolean = () => false) {
    const time = manualTime(five);
    const kept = fieldOverrides.filter(({ collectionGroup, fieldPath }) => collectionGroup !== 'ptk-lateness' || !without(fieldPath));
    const emulator = await startEmulator({ time, firestore: { indexes: { ...(indexes && { indexes }), fieldOverrides: kept } } });
    const db = firestoreClient(emulator.firestore.address, 'ptk-lateness-indexes');
    closing.push(async () => {
      await db.terminate();
      await emulator.close();
    });
    return { time, emulator, db, store: firestoreLatenessStore(db) };
  }

  test('has the index that the query needs, and no other of ptk-lateness', async () => {
    const { db, store } = await databaseWith(shipped);
    expect(await store.since(five)).toEqual([]);
    for (const field of ['counts', 'expireAt'])
      await expect(db.collection('ptk-lateness').orderBy(field).get()).rejects.toThrow(/requires an index/);
  });

  test('without its index the query is refused', async () => {
    const { store } = await databaseWith(shipped, (fieldPath) => fieldPath === 'hourAt');
    await expect(store.since(five)).rejects.toThrow(/requires an index/);
  });

  test('lets an hour go 8 days after it began, and not before', async () => {
    const { time, emulator, store } = await databaseWith(shipped);
    await store.put({ counter: 'a', hourAtMs: five, counts: { 1: 1 } });
    await time.advance(8 * 86_400_000 - 1);
    expect([await emulator.firestore.sweep(), (await store.since(0)).length]).toEqual([0, 1]);
    await time.advance(1);
    expect([await emulator.firestore.sweep(), (await store.since(0)).length]).toEqual([1, 0]);
  });
});
