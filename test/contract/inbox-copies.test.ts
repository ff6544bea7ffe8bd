import type { Firestore, Transaction } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { firestoreInbox } from '../../src/shared/adapters/firestore.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createInbox, type InboxContext, type InboxParts } from '../../src/shared/dedup/inbox.ts';
import { hash } from '../../src/shared/names.ts';
import type { Handler, System } from '../../src/shared/ports.ts';
import { ack, type Verdict } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { manualSystem } from '../support/manual-system.ts';
import { isOfficial, notRun } from '../support/official.ts';
import { secondFirestore } from '../support/second-firestore.ts';

const databases = await firestoreDatabases();
const manual = manualSystem();
const timed = await firestoreDatabases(manual.time);
const second = secondFirestore(databases, databases.open().projectId);

const context = () => ({ signal: new AbortController().signal });
const message = testMessage({ attributes: { 'ptk-key': 'k' }, data: 'payment' });
const counts = (verdicts: readonly Verdict[]) => {
  const count = (reason: string) => verdicts.filter((verdict) => verdict.reason === reason).length;
  return { processed: count('processed'), duplicate: count('duplicate'), all: verdicts.length };
};

function inboxOn(db: Firestore, parts: Partial<InboxParts<Transaction>> = {}) {
  return createInbox<Transaction>({
    consumer: 'c',
    store: firestoreInbox(db, system.clock, 'ptk-dedup'),
    system,
    log: silentLog,
    ...parts,
  });
}

/** Reads, then updates: both within the transaction. */
const paying =
  (db: Firestore): Handler<InboxContext<Transaction>> =>
  async (_, { transaction }) => {
    const account = db.doc('accounts/a');
    const balance = (await transaction.get(account)).get('balance');
    transaction.update(account, { balance: balance + 10 });
    return { balance: balance + 10 };
  };

/** Does nothing itself. */
const delegating = (db: Firestore, attempted: (times: number) => void = () => {}): Firestore =>
  ({
    collection: (path: string) => db.collection(path),
    async runTransaction(work: (transaction: Transaction) => Promise<unknown>, options: object) {
      let attempts = 0;
      const counted = (transaction: Transaction) => {
        attempts += 1;
        return work(transaction);
      };
      return db.runTransaction(counted, options).finally(() => attempted(attempts));
    },
  }) as unknown as Firestore;

async function withAccount(client: () => Firestore): Promise<{ readonly db: Firestore; balance(): Promise<unknown> }> {
  const db = client();
  await db.doc('accounts/a').set({ balance: 5 });
  return { db, balance: async () => (await db.doc('accounts/a').get()).get('balance') };
}

describe('copies of one message at the inbox', () => {
  test('50 at once, each in a process of its own: one effect, and no loser waits for longer than one pause', async () => {
    if (isOfficial) notRun('faults');
    const { client } = databases.open();
    const { balance } = await withAccount(client);
    const pausesMs: number[] = [];
    const watched: System = {
      ...system,
      clock: {
        ...system.clock,
        after(delayMs, run) {
          pausesMs.push(delayMs);
          return system.clock.after(delayMs, run);
        },
      },
    };
    const processes = Array.from({ length: 50 }, client);
    await Promise.all(processes.map((db) => db.doc('accounts/a').get()));
    const attempts: number[] = [];
    const inboxes = processes.map((db) =>
      inboxOn(
        delegating(db, (times) => attempts.push(times)),
        { system: watched },
      )(paying(db)),
    );
    const verdicts = await Promise.all(inboxes.map((deliver) => deliver(message, context())));
    expect(counts(verdicts)).toEqual({ processed: 1, duplicate: 49, all: 50 });
    expect(await balance()).toBe(15);
    expect(pausesMs.length).toBeLessThanOrEqual(49);
    expect(Math.max(...pausesMs)).toBeLessThanOrEqual(200);
    // The client's own back-off, of a second and more, begins with its second attempt at a transaction.
    expect(Math.max(...attempts)).toBe(1);
  });

  test('20 at once on a record whose time is over: one of them takes it over', async () => {
    const { client } = timed.open();
    const { db, balance } = await withAccount(client);
    const parts = (own: Firestore) => ({ store: firestoreInbox(own, manual.clock, 'ptk-dedup'), options: { ttlSeconds: 60 } });
    expect(await inboxOn(db, parts(db))(paying(db))(message, context())).toEqual(ack('processed'));
    await manual.time.advance(60_000);
    const verdicts = await Promise.all(
      Array.from({ length: 20 }, client).map((own) => inboxOn(own, parts(own))(paying(own))(message, context())),
    );
    expect(counts(verdicts)).toEqual({ processed: 1, duplicate: 19, all: 20 });
    expect(await balance()).toBe(25);
    expect((await db.doc(`ptk-dedup/c~${hash('k')}`).get()).data()).toMatchObject({ rev: 2, state: 'done' });
  });

  test('each duplicate is given the first result, and so is one that met the first run', async () => {
    const { client } = databases.open();
    const { db, balance } = await withAccount(client);
    const replayed: unknown[] = [];
    const inbox = inboxOn(db, { replay: async (_, { isKept, value }) => void replayed.push([isKept, value]) })(paying(db));
    const verdicts = await Promise.all([inbox(message, context()), inbox(message, context())]);
    expect(verdicts).toEqual([ack('processed'), ack('duplicate')]);
    expect(await inbox(message, context())).toEqual(ack('duplicate'));
    expect(replayed).toEqual(Array(2).fill([true, { balance: 15 }]));
    expect(await balance()).toBe(15);
  });

  test('a result that is no JSON is not kept, and its duplicate is acked all the same', async () => {
    const db = databases.open().client();
    const replayed: unknown[] = [];
    const inbox = inboxOn(db, { replay: async (_, first) => void replayed.push([first.isKept, first.value]) })(async () => 7n);
    expect([await inbox(message, context()), await inbox(message, context())]).toEqual([ack('processed'), ack('duplicate')]);
    expect(replayed).toEqual([[false, undefined]]);
  });
});

describe('the inbox with other clients', () => {
  test('one of a second copy of the package', async () => {
    const { db, balance } = await withAccount(() => second.db);
    const inbox = inboxOn(db)(paying(db));
    expect([await inbox(message, context()), await inbox(message, context())]).toEqual([ack('processed'), ack('duplicate')]);
    expect(await balance()).toBe(15);
    const marker = await db.doc(`ptk-dedup/c~${hash('k')}`).get();
    expect(marker.get('expireAt')).toBeInstanceOf(second.copy.Timestamp);
    expect(marker.get('firstSeenAt')).toBeInstanceOf(second.copy.Timestamp);
  });

  test('one that only delegates', async () => {
    const { db, balance } = await withAccount(databases.open().client);
    const inbox = inboxOn(delegating(db))(paying(db));
    expect([await inbox(message, context()), await inbox(message, context())]).toEqual([ack('processed'), ack('duplicate')]);
    expect(await balance()).toBe(15);
  });
});
