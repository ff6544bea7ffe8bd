import type { Transaction } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { firestoreInbox } from '../../src/shared/adapters/firestore.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createInbox, type InboxContext, type InboxStore } from '../../src/shared/dedup/inbox.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { hash } from '../../src/shared/names.ts';
import type { Handler, Log } from '../../src/shared/ports.ts';
import { ack, deadLetter, nack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { manualSystem } from '../support/manual-system.ts';

const databases = await firestoreDatabases();
const manual = manualSystem();
const timed = await firestoreDatabases(manual.time);

const context = () => ({ signal: new AbortController().signal });
const message = testMessage({ attributes: { 'ptk-key': 'k' }, data: 'payment' });

function setUp() {
  const database = databases.open();
  const db = database.client();
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (fields) => warnings.push(JSON.stringify(fields)) };
  const store = (client = db) => firestoreInbox(client, system.clock, 'ptk-dedup');
  const inbox = (over: InboxStore<Transaction> = store()) => createInbox({ consumer: 'c', store: over, system, log });
  const account = db.doc('accounts/a');
  const handler = Object.assign(
    async (_: unknown, { transaction }: InboxContext<Transaction>) => {
      handler.runs += 1;
      const balance = (await transaction.get(account)).get('balance') ?? 0;
      transaction.set(account, { balance: balance + 10 });
    },
    { runs: 0 },
  );
  return {
    ...database,
    db,
    warnings,
    store,
    inbox,
    account,
    handler,
    balance: async () => (await account.get()).get('balance'),
    marker: async () => (await db.doc(`ptk-dedup/c~${hash('k')}`).get()).data(),
    failCommits: (kind: 'answer-lost' | 'fail-before' | 'abort-transaction', times: number) =>
      databases.emulator.faults.add({ kind, rpc: 'Firestore.Commit', resource: database.projectId, times }),
  };
}

describe.concurrent('inbox on firestore', () => {
  test('the effect and the record of being done are one write', async () => {
    const { db, inbox, account, handler, balance, marker } = setUp();
    expect(await inbox()(handler)(message, context())).toEqual(ack('processed'));
    expect(await balance()).toBe(10);
    expect(await marker()).toMatchObject({ v: 1, rev: 1, state: 'done', key: 'k', expireAt: expect.anything() });
    const [effect, done] = await db.getAll(account, db.doc(`ptk-dedup/c~${hash('k')}`));
    expect(effect?.updateTime).toEqual(done?.updateTime);
  });

  test('a duplicate after that is acked and does not run', async () => {
    const { inbox, handler, balance } = setUp();
    await inbox()(handler)(message, context());
    expect(await inbox()(handler)(message, context())).toEqual(ack('duplicate'));
    expect(handler.runs).toBe(1);
    expect(await balance()).toBe(10);
  });

  test('20 copies at once in five processes have one effect, and none is acked without it', async () => {
    const { client, store, inbox, handler, balance } = setUp();
    const processes = Array.from({ length: 5 }, () => inbox(store(client()))(handler));
    const deliveries = processes.flatMap((deliver) => Array.from({ length: 4 }, () => deliver(message, context())));
    const seen = await Promise.all(
      deliveries.map(async (delivery) => {
        const { kind, reason } = await delivery;
        return { reason, effect: kind === 'ack' ? await balance() : 10 };
      }),
    );
    const count = (reason: string) => seen.filter((verdict) => verdict.reason === reason).length;
    expect(count('processed')).toBe(1);
    expect(count('duplicate') + count('inProgress')).toBe(19);
    expect(seen.filter(({ effect }) => effect !== 10)).toEqual([]);
    expect(await balance()).toBe(10);
  });

  test('a handler that throws has written nothing, and the next delivery runs', async () => {
    const { inbox, account, handler, balance, marker } = setUp();
    const failing: Handler<InboxContext<Transaction>> = async (_, { transaction }) => {
      transaction.set(account, { balance: 99 });
      throw new Error('boom');
    };
    expect(await inbox()(failing)(message, context())).toEqual(nack('failed'));
    expect([await balance(), await marker()]).toEqual([undefined, undefined]);
    expect(await inbox()(handler)(message, context())).toEqual(ack('processed'));
    expect(await balance()).toBe(10);
  });

  test.each([nack('early'), deadLetter('refused', 'no')])(
    'a verdict of the handler that is no ack ($kind) writes nothing and is passed on',
    async (verdict) => {
      const { inbox, account, balance, marker } = setUp();
      const handler: Handler<InboxContext<Transaction>> = async (_, { transaction }) => {
        transaction.set(account, { balance: 99 });
        return verdict;
      };
      expect(await inbox()(handler)(message, context())).toEqual(verdict);
      expect([await balance(), await marker()]).toEqual([undefined, undefined]);
    },
  );

  test.each([
    ['answer-lost', 1],
    ['fail-before', 1],
    ['abort-transaction', 3],
  ] as const)('one effect though the commit suffers %s, %i times', async (kind, times) => {
    const { inbox, handler, balance, failCommits } = setUp();
    failCommits(kind, times);
    expect(await inbox()(handler)(message, context())).toEqual(ack('processed'));
    expect(await inbox()(handler)(message, context())).toEqual(ack('duplicate'));
    expect(await balance()).toBe(10);
    expect(handler.runs).toBe(kind === 'abort-transaction' ? 4 : 1);
  });

  test('a handler whose read was aborted by another transaction runs again, and has not failed', async () => {
    const { inbox, handler, warnings, balance } = setUp();
    const aborts = [Object.assign(new Error('too much contention'), { code: 10 })];
    const contended: Handler<InboxContext<Transaction>> = async (message, context) => {
      const abort = aborts.pop();
      if (abort) throw abort;
      await handler(message, context);
    };
    expect(await inbox()(contended)(message, context())).toEqual(ack('processed'));
    expect([await balance(), warnings]).toEqual([10, []]);
  });

  test('gives the delivery back when every try is aborted', async () => {
    const { inbox, handler, balance, failCommits } = setUp();
    failCommits('abort-transaction', 8);
    expect(await inbox()(handler)(message, context())).toEqual(nack('inProgress', 1_000));
    expect(handler.runs).toBe(8);
    expect(await balance()).toBeUndefined();
  });

  test('a commit that the client gave up is recognised as its own', async () => {
    const { store, inbox, handler, balance } = setUp();
    const kept = store();
    const lossy: InboxStore<Transaction> = {
      get: kept.get,
      async transact(...args) {
        await kept.transact(...args);
        throw new ToolkitError('STORE_UNAVAILABLE', 'the answer was lost');
      },
    };
    expect(await inbox(lossy)(handler)(message, context())).toEqual(ack('processed'));
    expect([handler.runs, await balance()]).toEqual([1, 10]);
  });

  test('a commit that never was is given back', async () => {
    const { store, inbox, handler, balance } = setUp();
    const down: InboxStore<Transaction> = {
      get: store().get,
      transact: () => Promise.reject(new ToolkitError('STORE_UNAVAILABLE', 'down')),
    };
    expect(await inbox(down)(handler)(message, context())).toEqual(nack('storeUnavailable'));
    expect(await balance()).toBeUndefined();
  });

  test("the handler's own create of what exists is its failure, and leaves no record", async () => {
    const { inbox, account, balance, marker } = setUp();
    await account.set({ balance: 5 });
    const creating: Handler<InboxContext<Transaction>> = async (_, { transaction }) => void transaction.create(account, { balance: 10 });
    expect(await inbox()(creating)(message, context())).toEqual(nack('failed'));
    expect([await balance(), await marker()]).toEqual([5, undefined]);
  });

  test('a read after a write is refused in clear words, and nothing is committed', async () => {
    const { inbox, account, warnings, balance, marker } = setUp();
    const late: Handler<InboxContext<Transaction>> = async (_, { transaction }) => {
      transaction.set(account, { balance: 99 });
      await transaction.get(account);
    };
    expect(await inbox()(late)(message, context())).toEqual(nack('failed'));
    const reason = 'accounts/a is read after accounts/a was written: in a transaction all reads come before all writes';
    expect(warnings).toEqual([expect.stringContaining(reason)]);
    expect([await balance(), await marker()]).toEqual([undefined, undefined]);
  });

  test('another message under a finished key is a dead letter', async () => {
    const { inbox, handler, balance } = setUp();
    await inbox()(handler)(message, context());
    const other = testMessage({ attributes: { 'ptk-key': 'k' }, data: 'refund' });
    expect(await inbox()(handler)(other, context())).toMatchObject({ kind: 'deadLetter', reason: 'conflict' });
    expect(await balance()).toBe(10);
  });
});

describe('inbox on firestore: time', () => {
  test('a finished key counts until its time is over by the clock of the store, though its record stays', async () => {
    const db = timed.open().client();
    const store = firestoreInbox(db, manual.clock, 'ptk-dedup');
    const inbox = createInbox({ consumer: 'c', store, system: manual, log: silentLog, options: { ttlSeconds: 60 } });
    const effects = db.collection('effects');
    const deliver = inbox(async (_, { transaction }) => void transaction.create(effects.doc(), {}));
    expect(await deliver(message, context())).toEqual(ack('processed'));
    await manual.time.advance(59_999);
    expect(await deliver(message, context())).toEqual(ack('duplicate'));
    await manual.time.advance(1);
    expect(await deliver(message, context())).toEqual(ack('processed'));
    expect((await effects.get()).size).toBe(2);
    expect((await db.doc(`ptk-dedup/c~${hash('k')}`).get()).data()).toMatchObject({ rev: 2, state: 'done' });
  });
});
