import { type Firestore, Timestamp } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { firestoreVersionedDocuments } from '../../src/shared/adapters/firestore.ts';
import { memoryVersionedDocuments } from '../../src/shared/adapters/memory-documents.ts';
import type { VersionedDocuments } from '../../src/shared/dedup/versioned.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { secondFirestore } from '../support/second-firestore.ts';

type Order = { readonly [field: string]: unknown };

const databases = await firestoreDatabases();
const { projectId, client } = databases.open();
const db = client();
const second = secondFirestore(databases, projectId);

const adapters: readonly [string, VersionedDocuments<Order>][] = [
  ['memory', memoryVersionedDocuments<Order>()],
  ['firestore', firestoreVersionedDocuments<Order>(db, 'orders')],
  ['firestore, of a second copy of the client', firestoreVersionedDocuments<Order>(second.db, 'second')],
];

describe.each(adapters)('VersionedDocuments: %s', (_, documents) => {
  let ids = 0;
  const newId = () => `order ${++ids}`;
  const saved = async (data: Order) => {
    const id = newId();
    expect(await documents.save(id, data, 'absent')).toBe('saved');
    return { id, version: (await documents.load(id))?.version ?? '' };
  };

  test('what was never saved is not there', async () => {
    expect(await documents.load(newId())).toBeUndefined();
  });

  test('what is saved is loaded as it was', async () => {
    const data = { total: 10, lines: [{ sku: 'a.b', count: 2 }], 'a.b': { 'c/d': null }, text: 'grüße' };
    const { id } = await saved(data);
    expect((await documents.load(id))?.data).toEqual(data);
  });

  test('a save where something is stored is a conflict, and changes nothing', async () => {
    const { id, version } = await saved({ total: 1 });
    expect(await documents.save(id, { total: 2 }, 'absent')).toBe('conflict');
    expect(await documents.load(id)).toEqual({ data: { total: 1 }, version });
  });

  test('a save with the version that was loaded replaces the whole document', async () => {
    const { id, version } = await saved({ total: 1, note: 'x', nested: { a: 1, b: 2 }, processedEvents: { events: [], watermarkMs: 0 } });
    expect(await documents.save(id, { total: 2, nested: { a: 1 } }, version)).toBe('saved');
    const loaded = await documents.load(id);
    expect(loaded?.data).toEqual({ total: 2, nested: { a: 1 } });
    expect(loaded?.version).not.toBe(version);
  });

  test('a save with an older version is a conflict, and changes nothing', async () => {
    const { id, version } = await saved({ total: 1 });
    await documents.save(id, { total: 2 }, version);
    expect(await documents.save(id, { total: 3 }, version)).toBe('conflict');
    expect((await documents.load(id))?.data).toEqual({ total: 2 });
  });

  test('a save with a version where nothing is stored is a conflict, and stores nothing', async () => {
    const { version } = await saved({ total: 1 });
    const id = newId();
    expect(await documents.save(id, { total: 2 }, version)).toBe('conflict');
    expect(await documents.load(id)).toBeUndefined();
  });

  test('of 20 saves at once with one version, one is saved', async () => {
    const { id, version } = await saved({ total: 0 });
    const results = await Promise.all(Array.from({ length: 20 }, (_, index) => documents.save(id, { total: index + 1 }, version)));
    expect(results.filter((result) => result === 'saved')).toHaveLength(1);
    expect((await documents.load(id))?.data).toEqual({ total: results.indexOf('saved') + 1 });
  });
});

describe('VersionedDocuments: firestore alone', () => {
  const documents = firestoreVersionedDocuments<Order>(db, 'orders');

  test('a document keeps the instant at which it was created', async () => {
    await documents.save('kept', { total: 1 }, 'absent');
    const before = await db.doc('orders/kept').get();
    await documents.save('kept', { total: 2 }, (await documents.load('kept'))?.version ?? '');
    const after = await db.doc('orders/kept').get();
    expect([after.createTime, after.get('total')]).toEqual([before.createTime, 2]);
  });

  test.each(['a/b', 'a/b/c', '/', '.', '..', '__id__'])('an id that no document can have is refused: %s', async (id) => {
    await expect(documents.load(id)).rejects.toMatchObject({ code: 'MALFORMED_MESSAGE' });
    await expect(documents.save(id, { total: 1 }, 'absent')).rejects.toMatchObject({ code: 'MALFORMED_MESSAGE' });
  });

  test('a document over 1 MiB is refused for good', async () => {
    await expect(documents.save('large', { text: 'x'.repeat(1_048_577) }, 'absent')).rejects.toMatchObject({ code: 'REFUSED' });
  });

  test.each([14, 4])('a load that fails with code %i is an error that may pass', async (code) => {
    const get = () => Promise.reject(Object.assign(new Error('down'), { code }));
    const down = { collection: () => ({ doc: () => ({ get }) }) } as unknown as Firestore;
    await expect(firestoreVersionedDocuments(down, 'orders').load('x')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('the second copy of the client is one', () => {
    expect(second.copy.Timestamp).not.toBe(Timestamp);
  });
});
