import type { Firestore } from '@google-cloud/firestore';
import { afterAll, describe, expect, vi } from 'vitest';
import { integerOf } from '../../src/emulator/firestore/values.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { codeOf, embeddedFirestore, type RawFirestore, withFirestore, withRawFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore(manualTime());
const { target, time } = emulator;
afterAll(() => emulator.stop());

const waitingCommits = (count: number) => vi.waitFor(() => expect(emulator.waitingCommits()).toBe(count), { interval: 1 });

/** A transaction that has read, and stays open until it is told how to end. */
async function openTransaction(db: Firestore, path: string): Promise<{ end(how: 'commit' | 'rollback'): Promise<void> }> {
  const read = Promise.withResolvers<void>();
  const end = Promise.withResolvers<'commit' | 'rollback'>();
  const done = db
    .runTransaction(
      async (transaction) => {
        await transaction.get(db.doc(path));
        read.resolve();
        if ((await end.promise) === 'rollback') throw new Error('rolled back');
        transaction.set(db.doc(path), { by: 'transaction' }, { merge: true });
      },
      { maxAttempts: 1 },
    )
    .catch((error: Error) => {
      if (error.message !== 'rolled back') throw error;
    });
  await read.promise;
  return {
    end(how) {
      end.resolve(how);
      return done;
    },
  };
}

const nameOf = (database: string, id: string) => `${database}/documents/c/${id}`;
const setOf = (database: string, id: string, n: number) => ({ update: { name: nameOf(database, id), fields: { n: { integerValue: n } } } });

async function begin(raw: RawFirestore, database: string): Promise<Buffer> {
  const [answer] = await raw('BeginTransaction', { database });
  return answer?.transaction ?? Buffer.alloc(0);
}

const read = (raw: RawFirestore, database: string, transaction: Buffer, id = 'a') =>
  codeOf(raw('GetDocument', { name: nameOf(database, id), transaction }));

const commit = (raw: RawFirestore, database: string, transaction: Buffer, n = 1) =>
  codeOf(raw('Commit', { database, transaction, writes: [setOf(database, 'a', n)] }));

describe('Firestore locks: embedded', () => {
  for (const how of ['commit', 'rollback'] as const) {
    statement(
      target,
      71,
      `a plain write to what a live transaction has read waits for its ${how} and then applies`,
      withFirestore(target, async (db) => {
        await db.doc('c/a').set({ n: 1 });
        const transaction = await openTransaction(db, 'c/a');
        const write = db.doc('c/a').update({ n: 2 });
        await waitingCommits(1);
        expect((await db.doc('c/a').get()).data()).toEqual({ n: 1 });
        await db.doc('c/other').set({ n: 1 });
        await transaction.end(how);
        await write;
        expect((await db.doc('c/a').get()).data()).toEqual(how === 'commit' ? { n: 2, by: 'transaction' } : { n: 2 });
      }),
    );
  }

  statement(
    target,
    71,
    'a plain write that has waited 20 s for a transaction is ABORTED and not applied',
    withRawFirestore(target, async (raw, database) => {
      await raw('Commit', { database, writes: [setOf(database, 'a', 1)] });
      const transaction = await begin(raw, database);
      expect(await read(raw, database, transaction)).toBe('OK');
      const write = commit(raw, database, Buffer.alloc(0), 2);
      await waitingCommits(1);
      await time.advance(19_999);
      expect(emulator.waitingCommits()).toBe(1);
      await time.advance(1);
      expect(await write).toBe('ABORTED');
      const [kept] = await raw('GetDocument', { name: nameOf(database, 'a') });
      expect(kept?.fields).toEqual({ n: integerOf(1) });
      expect(await commit(raw, database, transaction)).toBe('OK');
    }),
  );

  statement(
    target,
    71,
    'a plain write waits for whoever had read before it came, and a later reader loses',
    withFirestore(target, async (db) => {
      await db.doc('c/a').set({ n: 1 });
      const earlier = await openTransaction(db, 'c/a');
      const write = db.doc('c/a').update({ n: 2 });
      await waitingCommits(1);
      const later = await openTransaction(db, 'c/a');
      await earlier.end('rollback');
      await write;
      expect(await codeOf(later.end('commit'))).toBe('ABORTED');
      expect((await db.doc('c/a').get()).data()).toEqual({ n: 2 });
    }),
  );

  statement(
    target,
    72,
    'a read outside is answered while a transaction holds its locks and a write waits for them',
    withFirestore(target, async (db) => {
      await db.doc('c/a').set({ n: 1 });
      const transaction = await openTransaction(db, 'c/a');
      const write = db.doc('c/a').update({ n: 2 });
      await waitingCommits(1);
      expect((await db.doc('c/a').get()).get('n')).toBe(1);
      expect((await db.collection('c').get()).size).toBe(1);
      await transaction.end('rollback');
      await write;
    }),
  );

  statement(
    target,
    73,
    'a query of a transaction locks what takes part in its result, and nothing behind its limit',
    withFirestore(target, async (db) => {
      const c = db.collection('c');
      await Promise.all([1, 2, 3, 4].map((n) => c.doc(`d${n}`).set({ n })));
      let blocked: Promise<unknown> = Promise.resolve();
      await db.runTransaction(async (transaction) => {
        expect((await transaction.get(c.orderBy('n').limit(2))).size).toBe(2);
        await c.doc('behind').set({ n: 2.5 });
        await c.doc('d3').delete();
        await db.doc('other/d').set({ n: 1 });
        expect(emulator.waitingCommits()).toBe(0);
        blocked = Promise.all([c.doc('before').set({ n: 1.5 }), c.doc('d1').delete(), c.doc('d4').update({ n: 0 })]);
        await waitingCommits(3);
      });
      await blocked;
      expect((await c.orderBy('n').get()).docs.map(({ id }) => id)).toEqual(['d4', 'before', 'd2', 'behind']);
    }),
  );

  statement(
    target,
    74,
    'a rollback lets a waiting write through without any time passing',
    withFirestore(target, async (db) => {
      const startedAtMs = time.nowMs();
      const transaction = await openTransaction(db, 'c/a');
      const write = db.doc('c/a').create({ n: 1 });
      await waitingCommits(1);
      await transaction.end('rollback');
      await write;
      expect(time.nowMs()).toBe(startedAtMs);
    }),
  );

  statement(
    target,
    75,
    'a transaction unused for 60 s has expired, one unused for less commits',
    withRawFirestore(target, async (raw, database) => {
      await raw('Commit', { database, writes: [setOf(database, 'a', 0)] });
      const inTime = await begin(raw, database);
      const late = await begin(raw, database);
      expect(await read(raw, database, inTime)).toBe('OK');
      expect(await read(raw, database, late, 'a')).toBe('OK');
      await time.advance(59_999);
      expect(await read(raw, database, inTime)).toBe('OK');
      await time.advance(1);
      const refused = raw('Commit', { database, transaction: late, writes: [setOf(database, 'b', 2)] });
      await expect(refused).rejects.toMatchObject({ code: 3, message: expect.stringContaining('transaction has expired') });
      expect(await commit(raw, database, inTime)).toBe('OK');
    }),
  );

  statement(
    target,
    75,
    'a transaction has expired after 270 s, however often it reads',
    withRawFirestore(target, async (raw, database) => {
      await raw('Commit', { database, writes: [setOf(database, 'a', 0)] });
      const transaction = await begin(raw, database);
      for (let passedMs = 0; passedMs < 250_000; passedMs += 50_000) {
        await time.advance(50_000);
        expect(await read(raw, database, transaction)).toBe('OK');
      }
      await time.advance(19_999);
      expect(await read(raw, database, transaction)).toBe('OK');
      await time.advance(1);
      const refused = raw('Commit', { database, transaction, writes: [setOf(database, 'a', 1)] });
      await expect(refused).rejects.toMatchObject({ code: 3, message: expect.stringContaining('transaction has expired') });
    }),
  );

  statement(
    target,
    75,
    'the locks of an expired transaction are gone, and the client runs it again',
    withFirestore(target, async (db) => {
      let runs = 0;
      await db.runTransaction(async (transaction) => {
        runs += 1;
        const n = (await transaction.get(db.doc('c/a'))).get('n') ?? 0;
        if (runs === 1) {
          await time.advance(60_000);
          await db.doc('c/a').create({ n: 10 });
        }
        transaction.set(db.doc('c/a'), { n: n + 1 });
      });
      expect(runs).toBe(2);
      expect((await db.doc('c/a').get()).get('n')).toBe(11);
    }),
  );

  statement(
    target,
    62,
    'read time minus update time is the age by the emulator’s clock',
    withFirestore(target, async (db) => {
      await db.doc('c/a').set({ n: 1 });
      await time.advance(30_000);
      const doc = await db.doc('c/a').get();
      expect(doc.readTime.toMillis() - (doc.updateTime?.toMillis() ?? 0)).toBe(30_000);
      expect(doc.readTime.toMillis()).toBe(time.nowMs());
    }),
  );
});
