import { describe, expect, test } from 'vitest';
import { firestoreVersionedDocuments } from '../../src/shared/adapters/firestore.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { type Apply, createVersioned, type Marked } from '../../src/shared/dedup/versioned.ts';
import { ack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';

type Account = { readonly balance: number; readonly owner?: string };

const databases = await firestoreDatabases();
const context = () => ({ signal: new AbortController().signal });
const payment = (key: string, publishTimeMs = 1_000) => testMessage({ attributes: { 'ptk-key': key }, data: '10', publishTimeMs });
const documentOf = () => 'a';

const adding: Apply<Account> = ({ data }, account) => ({ ...account, balance: (account?.balance ?? 0) + Number(Buffer.from(data)) });

function setUp() {
  const { client, projectId } = databases.open();
  const db = client();
  const account = db.doc('accounts/a');
  /** Each with a client of its own, as a process has. */
  const consumer = (name = 'c') =>
    createVersioned<Account>({
      consumer: name,
      documents: firestoreVersionedDocuments<Marked<Account>>(client(), 'accounts'),
      documentOf,
      system,
      log: silentLog,
    });
  return {
    projectId,
    account,
    consumer,
    stored: async () => (await account.get()).data(),
  };
}

describe.concurrent('events in the document that they change, on firestore', () => {
  test('the first event makes the document, which knows it then', async () => {
    const { consumer, stored } = setUp();
    expect(await consumer()(adding)(payment('k', 1_234), context())).toEqual(ack('processed'));
    expect(await stored()).toEqual({
      balance: 10,
      processedEvents: { events: [{ hash: expect.stringMatching(/^[\w-]{22}$/), atMs: 1_234 }], watermarkMs: 0 },
    });
  });

  test('a copy of it is a duplicate, in another process too', async () => {
    const { consumer, stored } = setUp();
    await consumer()(adding)(payment('k'), context());
    expect(await consumer()(adding)(payment('k'), context())).toEqual(ack('duplicate'));
    expect(await stored()).toMatchObject({ balance: 10 });
  });

  test('a document that was there before keeps its fields', async () => {
    const { account, consumer, stored } = setUp();
    await account.set({ balance: 5, owner: 'x' });
    expect(await consumer()(adding)(payment('k'), context())).toEqual(ack('processed'));
    expect(await stored()).toMatchObject({ balance: 15, owner: 'x' });
  });

  test('30 events at once from five processes are all applied, each once', async () => {
    const { consumer, stored } = setUp();
    const processes = Array.from({ length: 5 }, () => consumer()(adding));
    const deliveries = processes.flatMap((deliver, process) =>
      Array.from({ length: 6 }, (_, index) => deliver(payment(`${process} ${index}`), context())),
    );
    expect(await Promise.all(deliveries)).toEqual(Array(30).fill(ack('processed')));
    const after = await stored();
    expect(after?.balance).toBe(300);
    expect(after?.processedEvents.events).toHaveLength(30);
  });

  test('20 copies of one event at once from five processes are applied once', async () => {
    const { consumer, stored } = setUp();
    const processes = Array.from({ length: 5 }, () => consumer()(adding));
    const verdicts = await Promise.all(processes.flatMap((deliver) => Array.from({ length: 4 }, () => deliver(payment('k'), context()))));
    expect(verdicts.filter(({ reason }) => reason === 'processed')).toHaveLength(1);
    expect(verdicts.filter(({ reason }) => reason === 'duplicate')).toHaveLength(19);
    expect(await stored()).toMatchObject({ balance: 10 });
  });

  test.each([
    ['answer-lost', 1],
    ['answer-lost', 3],
    ['fail-before', 2],
  ] as const)('applied once though saves suffer %s, %i times', async (kind, times) => {
    // Before the first wait: after it nobody knows which of the tests at once asks.
    const { faults } = databases.emulator;
    const { projectId, account, consumer, stored } = setUp();
    await account.set({ balance: 5 });
    faults.add({ kind, rpc: 'Firestore.Commit', resource: projectId, times });
    expect(await consumer()(adding)(payment('k'), context())).toMatchObject({ kind: 'ack' });
    expect(await consumer()(adding)(payment('k'), context())).toEqual(ack('duplicate'));
    expect(await stored()).toMatchObject({ balance: 15 });
  });

  test('two consumers of one message change the document once each', async () => {
    const { consumer, stored } = setUp();
    expect(await consumer('c')(adding)(payment('k'), context())).toEqual(ack('processed'));
    expect(await consumer('d')(adding)(payment('k'), context())).toEqual(ack('processed'));
    expect(await stored()).toMatchObject({ balance: 20 });
  });
});
