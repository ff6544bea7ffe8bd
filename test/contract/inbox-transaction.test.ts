import type { Firestore, Transaction } from '@google-cloud/firestore';
import grpc from '@grpc/grpc-js';
import { afterAll, describe, expect, test } from 'vitest';
import { firestoreInbox } from '../../src/shared/adapters/firestore.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createInbox, type InboxContext } from '../../src/shared/dedup/inbox.ts';
import type { Handler, Log } from '../../src/shared/ports.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { firestoreClient } from '../support/targets.ts';

const databases = await firestoreDatabases();
const context = () => ({ signal: new AbortController().signal });
const message = testMessage({ attributes: { 'ptk-key': 'k' }, data: 'payment' });

function setUp() {
  const db = databases.open().client();
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (fields) => warnings.push(JSON.stringify(fields)) };
  return {
    db,
    warnings,
    account: db.doc('accounts/a'),
    inbox: (client: Firestore = db) =>
      createInbox<Transaction>({ consumer: 'c', store: firestoreInbox(client, system.clock, 'ptk-dedup'), system, log }),
    documents: async () => (await db.collection('accounts').get()).docs.map((snapshot) => [snapshot.id, snapshot.data()]),
    markers: async () => (await db.collection('ptk-dedup').get()).size,
  };
}

/** A client in whose transactions another one wins before the handler's read. */
function losing(db: Firestore, times: number): Firestore {
  let left = times;
  let reads = 0;
  const lost = () => Promise.reject(Object.assign(new Error('too much contention'), { code: 10 }));
  const lossy = (transaction: Transaction) =>
    new Proxy(transaction, {
      get(target, name) {
        const member = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        // The first read of each transaction is the marker.
        return (...args: unknown[]) => (name === 'get' && reads++ % 2 === 1 && left-- > 0 ? lost() : member.apply(target, args));
      },
    });
  return {
    collection: (path: string) => db.collection(path),
    runTransaction: (work: (transaction: Transaction) => Promise<unknown>, options: object) =>
      db.runTransaction((transaction) => work(lossy(transaction)), options),
  } as unknown as Firestore;
}

describe.concurrent('the transaction of an inbox handler', () => {
  test('reads, then writes, in any number', async () => {
    const { db, account, inbox, documents } = setUp();
    await account.set({ balance: 5 });
    const handler: Handler<InboxContext<Transaction>> = async (_, { transaction }) => {
      const [first] = await transaction.getAll(account, db.doc('accounts/b'));
      const found = await transaction.get(db.collection('accounts'));
      transaction.update(account, { balance: first?.get('balance') + found.size }).create(db.doc('accounts/c'), { balance: 1 });
      transaction.set(db.doc('accounts/d'), {}).delete(db.doc('accounts/d'));
    };
    expect(await inbox()(handler)(message, context())).toEqual(ack('processed'));
    expect(await documents()).toEqual([
      ['a', { balance: 6 }],
      ['c', { balance: 1 }],
    ]);
  });

  test.each<[string, (transaction: Transaction, db: Firestore) => Promise<unknown>, string]>([
    ['a document', (transaction, db) => transaction.get(db.doc('accounts/b')), 'accounts/b is read after accounts/a was written'],
    ['several', (transaction, db) => transaction.getAll(db.doc('accounts/b')), 'accounts/b is read after accounts/a was written'],
    ['a query', (transaction, db) => transaction.get(db.collection('accounts').limit(1)), 'a query is read after accounts/a was written'],
  ])('a read of %s after a write is an error that names both, and nothing is committed', async (_, read, reason) => {
    const { db, account, warnings, inbox, documents, markers } = setUp();
    const late: Handler<InboxContext<Transaction>> = async (_, { transaction }) => {
      transaction.set(account, { balance: 99 }).set(db.doc('accounts/c'), {});
      await read(transaction, db);
    };
    expect(await inbox()(late)(message, context())).toEqual(nack('failed'));
    expect(warnings).toEqual([expect.stringContaining(reason)]);
    expect([await documents(), await markers()]).toEqual([[], 0]);
  });

  type Read = (read: Promise<unknown>) => Promise<unknown>;
  test.each<[string, Read]>([
    ['as it is', (read) => read],
    ['in an error of its own', (read) => read.catch(() => Promise.reject(new Error('no balance')))],
    ['and a default instead', (read) => read.catch(() => 0)],
    [
      'and gives the delivery back',
      (read) =>
        read.then(
          () => 0,
          () => nack('early'),
        ),
    ],
  ])('a read that lost is tried again at once, though the handler passes on its error %s', async (_, read) => {
    const { db, account, warnings, inbox, documents } = setUp();
    let runs = 0;
    const handler: Handler<InboxContext<Transaction>> = async (_, { transaction }) => {
      runs += 1;
      const found = await read(transaction.get(account));
      transaction.set(account, { balance: runs });
      return found;
    };
    expect(await inbox(losing(db, 2))(handler)(message, context())).toEqual(ack('processed'));
    expect([runs, await documents(), warnings]).toEqual([3, [['a', { balance: 3 }]], []]);
  });

  test('an error of another code is the handler’s failure', async () => {
    const { db, inbox, documents } = setUp();
    const failing: Handler<InboxContext<Transaction>> = async () => Promise.reject(Object.assign(new Error('no'), { code: 9 }));
    expect(await inbox(losing(db, 0))(failing)(message, context())).toEqual(nack('failed'));
    expect(await documents()).toEqual([]);
  });
});

test('a client made with gaxServerStreamingRetries passes a lost read on at once, though its answer came without headers', async () => {
  let calls = 0;
  const server = new grpc.Server();
  const raw = (bytes: Buffer) => bytes;
  const lost = (call: grpc.ServerWritableStream<Buffer, Buffer>) => {
    calls += 1;
    call.emit('error', { code: 10, details: 'too much contention' });
  };
  server.register('/google.firestore.v1.Firestore/BatchGetDocuments', lost, raw, raw, 'serverStream');
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  const db = firestoreClient(`127.0.0.1:${port}`, 'p', { gaxServerStreamingRetries: true });
  afterAll(async () => {
    await db.terminate();
    server.forceShutdown();
  });
  const inbox = firestoreInbox(db, system.clock, 'ptk-dedup');
  expect(await inbox.transact('k', async () => undefined, 60_000)).toBe('contended');
  // Without the setting there are three, with 2 s and 4 s and more between them.
  expect(calls).toBe(1);
});
