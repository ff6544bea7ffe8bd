import type { QueryDocumentSnapshot } from '@google-cloud/firestore';
import { afterAll, describe, expect, test, vi } from 'vitest';
import type { FaultKind } from '../../src/emulator/faults.ts';
import { integerOf } from '../../src/emulator/firestore/values.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { codeOf, embeddedFirestore, withFirestore, withRawFirestore } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
const { target, faults } = emulator;
afterAll(() => emulator.stop());

const failCommits = (kind: FaultKind, resource: string, times: number) => faults.add({ kind, rpc: 'Firestore.Commit', resource, times });

/** At once, since most of their time is the client's own wait between tries. */
describe.concurrent('Firestore faults: embedded', () => {
  statement(
    target,
    76,
    'a create whose answer was lost surfaces ALREADY_EXISTS, and its token tells that it was ours',
    withFirestore(target, async (db, projectId) => {
      failCommits('answer-lost', projectId, 1);
      expect(await codeOf(db.doc('c/a').create({ token: 'mine' }))).toBe('ALREADY_EXISTS');
      expect((await db.doc('c/a').get()).get('token')).toBe('mine');
    }),
  );

  statement(
    target,
    76,
    'a create that failed before it was applied is tried again and succeeds',
    withFirestore(target, async (db, projectId) => {
      failCommits('fail-before', projectId, 1);
      expect(await codeOf(db.doc('c/a').create({ n: 1 }))).toBe('OK');
    }),
  );

  for (const kind of ['answer-lost', 'fail-before'] as const) {
    statement(
      target,
      76,
      `a transaction whose commit suffers ${kind} is applied once, in one run`,
      withFirestore(target, async (db, projectId) => {
        await db.doc('c/a').set({ n: 1 });
        failCommits(kind, projectId, 1);
        let runs = 0;
        await db.runTransaction(async (transaction) => {
          runs += 1;
          const n = (await transaction.get(db.doc('c/a'))).get('n');
          transaction.update(db.doc('c/a'), { n: n + 1 });
          transaction.create(db.doc('c/receipt'), {});
        });
        expect(runs).toBe(1);
        expect((await db.doc('c/a').get()).get('n')).toBe(2);
      }),
    );
  }

  statement(
    target,
    76,
    'a commit repeated with the id of its transaction answers the same and applies nothing twice',
    withRawFirestore(target, async (raw, database) => {
      const name = `${database}/documents/c/a`;
      const [begun] = await raw('BeginTransaction', { database });
      const transaction = begun?.transaction;
      const writes = [{ update: { name }, updateTransforms: [{ fieldPath: 'n', increment: { integerValue: 1 } }] }];
      const first = await raw('Commit', { database, transaction, writes });
      expect(await raw('Commit', { database, transaction, writes })).toEqual(first);
      const [doc] = await raw('GetDocument', { name });
      expect(doc?.fields).toEqual({ n: integerOf(1) });
      expect(await codeOf(raw('GetDocument', { name, transaction }))).toBe('INVALID_ARGUMENT');
    }),
  );

  for (const { aborts, code } of [
    { aborts: 4, code: 'OK' },
    { aborts: 5, code: 'ABORTED' },
  ]) {
    statement(
      target,
      77,
      `a transaction whose commit is ABORTED ${aborts} times ends after five runs with ${code}`,
      withFirestore(target, async (db, projectId) => {
        failCommits('abort-transaction', projectId, aborts);
        let runs = 0;
        const increment = db.runTransaction(async (transaction) => {
          runs += 1;
          const n = (await transaction.get(db.doc('c/a'))).get('n') ?? 0;
          transaction.set(db.doc('c/a'), { n: n + 1 });
        });
        expect(await codeOf(increment)).toBe(code);
        expect(runs).toBe(5);
        expect((await db.doc('c/a').get()).data()).toEqual(code === 'OK' ? { n: 1 } : undefined);
      }),
    );
  }

  test(
    'a read that failed is tried again by the client',
    withFirestore(target, async (db, projectId) => {
      await db.doc('c/a').set({ n: 1 });
      for (const rpc of ['Firestore.BatchGetDocuments', 'Firestore.RunQuery'])
        faults.add({ kind: 'fail-before', rpc, resource: projectId, times: 1 });
      expect((await db.doc('c/a').get()).get('n')).toBe(1);
      expect((await db.collection('c').get()).size).toBe(1);
    }),
  );
});

/** With dice and a clock that nobody else moves. */
describe('Firestore faults of one: embedded', async () => {
  const own = await embeddedFirestore(manualTime());
  afterAll(() => own.stop());

  test(
    'a slow call is applied after its delay, and the reads beside it are not held up',
    withFirestore(own.target, async (db, resource) => {
      own.faults.add({ kind: 'slow-call', rpc: 'Firestore.Commit', resource, times: 1, delayMs: 5_000 });
      let written = false;
      const write = db
        .doc('c/a')
        .set({ n: 1 })
        .then(() => {
          written = true;
        });
      await vi.waitFor(() => expect(own.faults.counts()['slow-call']).toBe(1), { timeout: 5_000 });
      await own.time.advance(4_999);
      expect((await db.doc('c/a').get()).exists).toBe(false);
      expect(written).toBe(false);
      await own.time.advance(1);
      await write;
      expect((await db.doc('c/a').get()).exists).toBe(true);
    }),
  );

  test(
    'a query whose stream is closed midway is continued by the client without a gap or a repeat',
    withFirestore({ ...own.target, projectId: 'ptk-midway' }, async (db, projectId) => {
      const batch = db.batch();
      for (let n = 0; n < 20; n++) batch.set(db.doc(`c/${n}`), { n });
      await batch.commit();
      const remove = own.faults.add({ kind: 'close-stream', rpc: 'Firestore.RunQuery', resource: projectId, probability: 0.2, times: 5 });
      const numbers: number[] = [];
      for await (const row of db.collection('c').orderBy('n').stream()) {
        numbers.push((row as unknown as QueryDocumentSnapshot).get('n'));
      }
      remove();
      expect(own.faults.counts()['close-stream']).toBeGreaterThan(0);
      expect(numbers).toEqual(Array.from({ length: 20 }, (_, n) => n));
    }),
  );

  test(
    'a stream that is closed ends with UNAVAILABLE',
    withRawFirestore(own.target, async (raw, database) => {
      own.faults.add({ kind: 'close-stream', resource: database, times: 1 });
      const query = { parent: `${database}/documents`, structuredQuery: { from: [{ collectionId: 'c' }] } };
      expect([await codeOf(raw('RunQuery', query)), await codeOf(raw('RunQuery', query))]).toEqual(['UNAVAILABLE', 'OK']);
    }),
  );
});
