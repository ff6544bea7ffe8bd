import { FieldValue, GeoPoint, Timestamp } from '@google-cloud/firestore';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { codeOf, embeddedFirestore, withFirestore, withRawFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
const { target } = emulator;
afterEach(() => emulator.reset());
afterAll(() => emulator.stop());

describe('Firestore inspection: embedded', () => {
  test(
    'a document and a collection are read as plain values, by a path or a whole name',
    withFirestore(target, async (db, projectId) => {
      const at = new Date(1_700_000_000_123);
      const data = { n: 7, big: 2n ** 60n, half: 0.5, none: null, yes: true, text: 'x', list: [1, { a: 2 }], bytes: Buffer.from('b') };
      const special = { at: Timestamp.fromDate(at), place: new GeoPoint(1, 2), ref: db.doc('c/b') };
      await db.doc('c/a').set({ ...data, ...special });
      await db.doc('c/b').set({ vector: FieldValue.vector([1, 2]) });
      await db.doc('c/a/below/x').set({});
      const root = `projects/${projectId}/databases/(default)/documents`;
      expect(emulator.document('c/a')).toEqual({ ...data, at, place: { latitude: 1, longitude: 2 }, ref: `${root}/c/b` });
      expect(emulator.document(`${root}/c/b`)).toEqual({ vector: [1, 2] });
      expect(Object.keys(emulator.collection('c'))).toEqual(['a', 'b']);
      expect(emulator.collection(`${root}/c/a/below`)).toEqual({ x: {} });
      expect([emulator.document('c/none'), emulator.collection('none')]).toEqual([undefined, {}]);
      expect(emulator.documentCount()).toBe(3);
    }),
  );

  test('a path is refused where several databases hold documents, and where it leads to none', async () => {
    for (const project of ['one', 'two']) {
      await withFirestore({ ...target, projectId: project }, (db) =>
        db
          .doc('c/a')
          .create({ project })
          .then(() => {}),
      )();
    }
    expect(() => emulator.document('c/a')).toThrow(
      '"c/a" may be in any of projects/one/databases/(default), projects/two/databases/(default)',
    );
    expect(emulator.document('projects/two/databases/(default)/documents/c/a')).toEqual({ project: 'two' });
    expect(() => emulator.document('projects/one/databases/(default)/documents/c')).toThrow('lacks a document id');
  });

  test(
    'transactions count as live until they end',
    withRawFirestore(target, async (raw, database) => {
      const [first] = await raw('BeginTransaction', { database });
      await raw('BeginTransaction', { database });
      expect(emulator.liveTransactions()).toBe(2);
      await raw('Rollback', { database, transaction: first?.transaction });
      expect(emulator.liveTransactions()).toBe(1);
    }),
  );

  test(
    'a reset forgets documents and transactions, and turns away a commit that waits',
    withRawFirestore(target, async (raw, database) => {
      const name = `${database}/documents/c/a`;
      const writes = [{ update: { name } }];
      await raw('Commit', { database, writes });
      const [begun] = await raw('BeginTransaction', { database });
      const transaction = begun?.transaction;
      await raw('BatchGetDocuments', { database, documents: [name], transaction });
      const waiting = codeOf(raw('Commit', { database, writes: [{ delete: name }] }));
      await expect.poll(() => emulator.waitingCommits()).toBe(1);
      emulator.reset();
      expect(await waiting).toBe('UNAVAILABLE');
      expect([emulator.documentCount(), emulator.liveTransactions(), emulator.waitingCommits()]).toEqual([0, 0, 0]);
      await expect(raw('Commit', { database, transaction, writes })).rejects.toThrow('transaction has expired');
      expect(emulator.documentCount()).toBe(0);
    }),
  );
});
