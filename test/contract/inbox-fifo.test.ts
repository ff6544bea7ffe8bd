import { describe, expect, test, vi } from 'vitest';
import { firestoreFifoStore, firestoreFifoTransactions } from '../../src/shared/adapters/firestore-fifo.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Message } from '../../src/shared/message.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { context, numbered } from '../support/fifo-processes.ts';
import { deliverAll, type InboxHandler, inboxFifo, summing, writing } from '../support/inbox-fifo.ts';
import { gate } from '../support/manual-system.ts';
import { upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const processed = (count: number) => Array(count).fill(ack('processed'));

describe.concurrent('inboxFifo', () => {
  test('writes the effects, the records and the position of a whole run in one commit', async () => {
    const { db, process, cursor, effects, count } = inboxFifo(databases);
    expect(await deliverAll(process(writing(db)), [3, 2, 5, 4, 1])).toEqual(processed(5));
    expect((await effects()).map(({ seq }) => seq).sort()).toEqual(upTo(5));
    expect(await count('ptk-dedup')).toBe(5);
    // The claim and one commit.
    expect(await cursor()).toMatchObject({ last: 5, rev: 2, runId: '', by: 0 });
  });

  test('begins another transaction where a number reads what one before it writes, so each sees all before it', async () => {
    const { db, process, cursor } = inboxFifo(databases);
    expect(await deliverAll(process(summing(db)), [3, 2, 4, 1])).toEqual(processed(4));
    expect((await db.doc('sums/s').get()).get('had')).toBe('1 2 3 4 ');
    expect(await cursor()).toMatchObject({ last: 4, rev: 5 });
  });

  test('begins another transaction for a query after a write too', async () => {
    const { db, process, effects } = inboxFifo(databases);
    const counting: InboxHandler = async ({ attributes }, { transaction }) => {
      const { size } = await transaction.get(db.collection('effects'));
      transaction.create(db.doc(`effects/${attributes['ptk-seq']}`), { before: size });
    };
    await deliverAll(process(counting), [3, 2, 1]);
    expect((await effects()).map(({ before }) => before)).toEqual([0, 1, 2]);
  });

  test('a number that fails leaves nothing, what is before it is committed, and it counts as an attempt', async () => {
    const { db, process, cursor, effects } = inboxFifo(databases);
    let failures = 1;
    const handle = process(async (message, own) => {
      await writing(db)(message, own);
      if (message.attributes['ptk-seq'] === '3' && failures-- > 0) throw new Error('not yet');
    });
    const verdicts = await deliverAll(handle, [2, 3, 1]);
    expect(verdicts).toEqual([ack('processed'), nack('failed'), ack('processed')]);
    expect([await cursor(), (await effects()).length]).toMatchObject([{ last: 2, attempts: 1, runId: '' }, 2]);
    expect(await deliverAll(handle, [3])).toEqual(processed(1));
    expect([await cursor(), (await effects()).length]).toMatchObject([{ last: 3, attempts: 0 }, 3]);
  });

  test('a number whose write is refused at the commit fails alone', async () => {
    const { db, process, cursor, effects } = inboxFifo(databases);
    await db.doc('effects/2').create({ seq: 0 });
    const verdicts = await deliverAll(process(writing(db), { options: { maxAttempts: 2, holdMs: 500 } }), [2, 3, 1]);
    expect(verdicts.slice(0, 1).concat(verdicts.slice(2))).toEqual([nack('failed'), ack('processed')]);
    expect([await cursor(), (await effects()).length]).toMatchObject([{ last: 1, attempts: 1, runId: '' }, 2]);
  });

  test('a number whose attempts are used up is parked in the commit that stops its stream', async () => {
    const { db, process, cursor, count } = inboxFifo(databases);
    const poisoned: InboxHandler = async (message, own) => {
      if (message.attributes['ptk-seq'] === '2') throw new Error('poison');
      await writing(db)(message, own);
    };
    const handle = process(poisoned, { options: { maxAttempts: 1, holdMs: 500 } });
    expect((await deliverAll(handle, [2, 1])).map(({ kind }) => kind)).toEqual(['ack', 'ack']);
    expect([await cursor(), await count('ptk-parked')]).toMatchObject([{ last: 1, blocked: { seq: 2, reason: 'attempts' } }, 1]);
  });

  test('one that is too large to be parked stops its stream too, and stays with its topic', async () => {
    const { process, cursor, count } = inboxFifo(databases);
    const poisoned = process(() => Promise.reject(new Error('poison')), { options: { maxAttempts: 1 } });
    const large = { ...numbered(1), data: Buffer.alloc(1_000_001) };
    expect(await poisoned(large, context())).toEqual(nack('blocked'));
    expect([await cursor(), await count('ptk-parked')]).toMatchObject([{ last: 0, runId: '', blocked: { seq: 1 } }, 0]);
  });

  test('a key that has two numbers runs once, and both pass', async () => {
    const { db, process, cursor, effects } = inboxFifo(databases);
    const handle = process(writing(db));
    const copy = (number: number): Message => numbered(number, { 'ptk-key': 'one' });
    const verdicts = await Promise.all([2, 1].map((number) => handle(copy(number), context())));
    expect(verdicts.map(({ reason }) => reason).sort()).toEqual(['duplicate', 'processed']);
    expect([await cursor(), await effects()]).toMatchObject([{ last: 2 }, [{ seq: 1 }]]);
  });

  test.each(['answer-lost', 'fail-before'] as const)('a commit that suffers %s has its effects once', async (kind) => {
    const { db, process, cursor, effects, fail } = inboxFifo(databases);
    const handle = process(writing(db));
    await deliverAll(handle, [1]);
    fail(kind);
    const verdicts = await deliverAll(handle, [3, 2]);
    const again = await deliverAll(
      handle,
      verdicts.flatMap(({ kind: verdict }, index) => (verdict === 'nack' ? [[3, 2][index] ?? 0] : [])),
    );
    expect([...verdicts, ...again].filter((verdict) => verdict.kind === 'ack')).toHaveLength(2);
    expect([(await cursor())?.last, (await effects()).length]).toEqual([3, 3]);
  });

  test('a commit whose answer is lost for good is looked up, and its numbers are not run again', async () => {
    const { db, client, process, cursor } = inboxFifo(databases);
    const over = client();
    const real = firestoreFifoTransactions(over, system.clock);
    let losses = 1;
    const transactions: typeof real = {
      async transact(...args) {
        const committed = await real.transact(...args);
        if (losses-- > 0) throw new ToolkitError('STORE_UNAVAILABLE', 'no answer');
        return committed;
      },
    };
    let runs = 0;
    const handle = process(
      async (message, own) => {
        runs += 1;
        await writing(db)(message, own);
      },
      { transactions },
      over,
    );
    expect(await deliverAll(handle, [2, 1])).toEqual(processed(2));
    expect([runs, (await cursor())?.last]).toEqual([2, 2]);
  });

  test('a process that dies in its transaction leaves no lock on the position: another goes on once its lease is over', async () => {
    const { db, client, process, cursor } = inboxFifo(databases);
    const dead = client();
    const store = firestoreFifoStore(dead, system.clock);
    let claims = 0;
    const put: typeof store.put = (...args) => (++claims === 1 ? store.put(...args) : new Promise(() => {}));
    const begun = gate();
    const hangs = process(
      async (_, { transaction }) => {
        await transaction.get(db.doc('accounts/a'));
        begun.open();
        await new Promise(() => {});
      },
      { store: { ...store, put }, options: { leaseMs: 300 } },
      dead,
    );
    void deliverAll(hangs, [1]);
    await begun.opened;
    const heir = process(writing(db));
    await vi.waitFor(async () => expect(await deliverAll(heir, [1])).toEqual(processed(1)), 5_000);
    expect((await cursor())?.last).toBe(1);
  });

  test('renewals while its transactions run, with their answers lost, never take the position back', async () => {
    const { client, process, cursor } = inboxFifo(databases);
    const over = client();
    const store = firestoreFifoStore(over, system.clock);
    let renewals = 0;
    const put: typeof store.put = async (...args) => {
      const answer = await store.put(...args);
      if (++renewals > 1) throw new ToolkitError('STORE_UNAVAILABLE', 'no answer');
      return answer;
    };
    const slow: InboxHandler = async (message, own) => {
      await summing(over)(message, own);
      await new Promise((resolve) => system.clock.after(60, () => resolve(undefined)));
    };
    const lasts: number[] = [];
    const seen = over.doc('ptk-cursors/c~s').onSnapshot((snapshot) => lasts.push(snapshot.get('last') ?? 0));
    const verdicts = await deliverAll(process(slow, { store: { ...store, put }, options: { leaseMs: 120 } }, over), [5, 4, 3, 2, 1]);
    await vi.waitFor(() => expect(lasts.at(-1)).toBe(5));
    seen();
    expect(verdicts).toEqual(processed(5));
    expect([lasts.toSorted((a, b) => a - b), renewals > 4, (await cursor())?.runId]).toEqual([lasts, true, '']);
  });

  test('what was parked is run in the same transactions, and leaves the park', async () => {
    const { db, process, cursor, count } = inboxFifo(databases);
    const handle = process(summing(db), { options: { holdMs: 0 } });
    expect((await deliverAll(handle, [3, 4, 2])).map(({ reason }) => reason)).toEqual(Array(3).fill('parked'));
    expect(await deliverAll(handle, [1])).toEqual(processed(1));
    expect([(await db.doc('sums/s').get()).get('had'), await count('ptk-parked'), (await cursor())?.last]).toEqual(['1 2 3 4 ', 0, 4]);
  });

  test('what a handler sends goes out with its commit, once', async () => {
    const { process, relay, publisher } = inboxFifo(databases);
    const sending: InboxHandler = async ({ attributes }, { send }) => {
      await send({ topic: 't', data: Buffer.from(`after ${attributes['ptk-seq']}`), stream: 'out' });
    };
    await deliverAll(process(sending), [2, 3, 1]);
    await relay()();
    expect(publisher.published.map(({ message: { data } }) => `${data}`)).toEqual(['after 1', 'after 2', 'after 3']);
  });

  test('a message without a stream goes through the inbox', async () => {
    const { db, process, effects } = inboxFifo(databases);
    const handle = process(async (_, { transaction }) => {
      transaction.create(db.doc('effects/free'), { seq: 0 });
    });
    const free = testMessage({ attributes: { 'ptk-key': 'free' } });
    expect([await handle(free, context()), await handle(free, context())]).toEqual([ack('processed'), ack('duplicate')]);
    expect(await effects()).toEqual([{ seq: 0 }]);
  });

  test('of three processes with all numbers at once, shuffled, each number has its effect once and in order', async () => {
    const { db, process, cursor } = inboxFifo(databases);
    let waiting = [5, 3, 1, 4, 2, 8, 7, 6];
    const processes = [1, 2, 3].map(() => process(summing(db), { options: { commitEvery: 3, holdMs: 300 } }));
    for (let rounds = 0; waiting.length > 0 && rounds < 40; rounds++) {
      const verdicts = await Promise.all(processes.map((handle) => deliverAll(handle, waiting)));
      waiting = waiting.filter((_, index) => verdicts.every((of) => of[index]?.kind === 'nack'));
    }
    await Promise.all(processes.map((handle) => handle.sweep('s')));
    expect([(await db.doc('sums/s').get()).get('had'), (await cursor())?.last]).toEqual(['1 2 3 4 5 6 7 8 ', 8]);
  });
});
