import { Timestamp } from '@google-cloud/firestore';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { changesOf, querySnapshots } from './firestore-snapshots.ts';
import { embeddedFirestore, withFirestore, withRawFirestore } from './firestore-targets.ts';

const fieldOverrides = [
  { collectionGroup: 'records', fieldPath: 'expireAt', ttl: true, indexes: [] },
  { collectionGroup: 'records', fieldPath: 'other', indexes: [] },
];
const time = manualTime();
const emulator = await embeddedFirestore(time, { indexes: { fieldOverrides } });
const { target } = emulator;
afterEach(() => emulator.reset());
afterAll(() => emulator.stop());

const inMs = (ms: number) => Timestamp.fromMillis(time.nowMs() + ms);
const google = { notApplicable: 'it deletes nothing that has expired, and its time cannot be moved' };
const policy = { collectionGroup: 'records', field: 'expireAt' };

describe('Firestore TTL: embedded', () => {
  statement(
    target,
    79,
    'a document past its TTL is read, queried and claimed by create until the sweep runs',
    withFirestore(target, async (db) => {
      const document = db.doc('records/a');
      await document.create({ expireAt: inMs(1_000), n: 1 });
      await time.advance(24 * 3_600_000);
      expect((await document.get()).get('n')).toBe(1);
      expect((await db.collection('records').where('n', '==', 1).get()).size).toBe(1);
      await expect(document.create({ n: 2 })).rejects.toMatchObject({ code: 6 });
      expect(await emulator.sweep([policy])).toBe(1);
      expect((await document.get()).exists).toBe(false);
      await document.create({ n: 2 });
    }),
    google,
  );

  statement(
    target,
    79,
    'a sweep takes what expires at this instant and leaves what expires a millisecond later, what has no timestamp, and other groups',
    withFirestore(target, async (db) => {
      await Promise.all([
        db.doc('records/now').set({ expireAt: inMs(1_000) }),
        db.doc('above/x/records/below').set({ expireAt: inMs(1_000) }),
        db.doc('records/later').set({ expireAt: inMs(1_001) }),
        db.doc('records/number').set({ expireAt: 1 }),
        db.doc('records/none').set({ other: inMs(0) }),
        db.doc('elsewhere/now').set({ expireAt: inMs(0) }),
      ]);
      await time.advance(999);
      expect(await emulator.sweep()).toBe(0);
      await time.advance(1);
      expect(await emulator.sweep()).toBe(2);
      expect(Object.keys(emulator.collection('records'))).toEqual(['later', 'none', 'number']);
      expect(emulator.documentCount()).toBe(4);
    }),
    google,
  );

  test(
    'a listener sees what the sweep takes',
    withFirestore(target, async (db) => {
      await db.doc('records/a').set({ expireAt: inMs(0), n: 1 });
      using snapshots = querySnapshots(db.collection('records'));
      await snapshots.next();
      await emulator.sweep();
      expect(changesOf(await snapshots.next())).toEqual(['removed a 1']);
    }),
  );

  test(
    'a document that a transaction has read goes after it, unless it was changed',
    withRawFirestore(target, async (raw, database) => {
      const named = (id: string) => `${database}/documents/records/${id}`;
      const expiring = { expireAt: { timestampValue: { seconds: '1' } } };
      const update = (id: string, fields: object) => ({ update: { name: named(id), fields } });
      await raw('Commit', { database, writes: [update('kept', expiring), update('gone', expiring)] });
      const [begun] = await raw('BeginTransaction', { database });
      const transaction = begun?.transaction;
      await raw('BatchGetDocuments', { database, documents: [named('kept'), named('gone')], transaction });
      const sweeping = emulator.sweep();
      await expect.poll(() => emulator.waitingCommits()).toBe(2);
      await raw('Commit', { database, transaction, writes: [update('kept', {})] });
      expect(await sweeping).toBe(1);
      expect(emulator.collection('records')).toEqual({ kept: {} });
    }),
  );
});
