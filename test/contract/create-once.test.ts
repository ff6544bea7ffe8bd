import { FieldValue, Timestamp } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { createOnce } from '../../src/shared/adapters/firestore.ts';
import { ack, type Verdict } from '../../src/shared/verdict.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { manualSystem, settled } from '../support/manual-system.ts';
import { secondFirestore } from '../support/second-firestore.ts';

const databases = await firestoreDatabases();
const second = secondFirestore(databases, databases.open().projectId);
const order = { customer: 'c', total: 10 };
const conflict = (path: string, ...differing: string[]): Verdict => ({
  kind: 'deadLetter',
  reason: 'conflict',
  detail: JSON.stringify({ path, differing }),
});

function setUp() {
  const { client, projectId } = databases.open();
  const db = client();
  return {
    db,
    ref: db.doc('orders/o'),
    copies: (count: number) => Array.from({ length: count }, () => client().doc('orders/o')),
    failCommits: (kind: 'answer-lost' | 'fail-before', times: number) =>
      databases.emulator.faults.add({ kind, rpc: 'Firestore.Commit', resource: projectId, times }),
  };
}

describe.concurrent('a document that is its own marker', () => {
  test('the first message makes it, and a copy of that message is a duplicate', async () => {
    const { ref } = setUp();
    expect(await createOnce(ref, order)).toEqual(ack('processed'));
    expect(await createOnce(ref, { ...order })).toEqual(ack('duplicate'));
    expect((await ref.get()).data()).toEqual(order);
  });

  test('other content is a dead letter with path and names of fields, and no values', async () => {
    const { ref } = setUp();
    await createOnce(ref, order);
    expect(await createOnce(ref, { customer: 'd', total: 11, note: 'secret' })).toEqual(conflict('orders/o', 'customer', 'total', 'note'));
    expect((await ref.get()).data()).toEqual(order);
  });

  test('fields that others have added do not count', async () => {
    const { ref } = setUp();
    await createOnce(ref, order);
    await ref.update({ status: 'shipped' });
    expect(await createOnce(ref, order)).toEqual(ack('duplicate'));
  });

  test('a field that others have changed does, unless `same` says otherwise', async () => {
    const { ref } = setUp();
    await createOnce(ref, order);
    await ref.update({ total: 12 });
    expect(await createOnce(ref, order)).toEqual(conflict('orders/o', 'total'));
    const same = (stored: object, data: object) => 'customer' in stored && 'customer' in data && stored.customer === data.customer;
    expect(await createOnce(ref, order, { same })).toEqual(ack('duplicate'));
    expect(await createOnce(ref, { ...order, customer: 'd' }, { same })).toEqual(conflict('orders/o', 'customer', 'total'));
  });

  test('what is left to the server cannot be compared and is not', async () => {
    const { ref } = setUp();
    const data = {
      total: 10,
      at: FieldValue.serverTimestamp(),
      count: FieldValue.increment(1),
      meta: { at: FieldValue.serverTimestamp() },
    };
    expect(await createOnce(ref, data)).toEqual(ack('processed'));
    expect(await createOnce(ref, data)).toEqual(ack('duplicate'));
    expect((await ref.get()).get('count')).toBe(1);
  });

  test('of 20 copies at once one is processed and 19 are duplicates', async () => {
    const { copies } = setUp();
    const verdicts = await Promise.all(copies(4).flatMap((ref) => Array.from({ length: 5 }, () => createOnce(ref, order))));
    const count = (verdict: Verdict) => verdicts.filter(({ kind, reason }) => kind === verdict.kind && reason === verdict.reason).length;
    expect([count(ack('processed')), count(ack('duplicate'))]).toEqual([1, 19]);
  });

  test.each([
    ['answer-lost', 1, 'duplicate'],
    ['answer-lost', 3, 'duplicate'],
    ['fail-before', 1, 'processed'],
    ['fail-before', 3, 'processed'],
  ] as const)('there once and acked though the create suffers %s, %i times', async (kind, times, reason) => {
    const { ref, failCommits } = setUp();
    failCommits(kind, times);
    expect(await createOnce(ref, order)).toEqual(ack(reason));
    expect((await ref.get()).data()).toEqual(order);
    expect(await createOnce(ref, order)).toEqual(ack('duplicate'));
  });

  test('a document over 1 MiB is refused for good', async () => {
    await expect(createOnce(setUp().ref, { text: 'x'.repeat(1_048_577) })).rejects.toMatchObject({ code: 'REFUSED' });
  });

  test('what the client does not take is the handler’s mistake', async () => {
    const { ref } = setUp();
    await expect(createOnce(ref, { total: undefined })).rejects.toThrow(/Cannot use "undefined" as a Firestore value/);
    expect((await ref.get()).exists).toBe(false);
  });

  test('a reference of a second copy of the client, with values of that copy', async () => {
    const { copy, db } = second;
    const ref = db.doc('orders/o');
    const data = {
      at: new copy.Timestamp(1, 2_000),
      where: new copy.GeoPoint(1, 2),
      customer: db.doc('customers/c'),
      vector: copy.FieldValue.vector([1, 2]),
      made: copy.FieldValue.serverTimestamp(),
    };
    expect(await createOnce(ref, data)).toEqual(ack('processed'));
    expect(await createOnce(ref, data)).toEqual(ack('duplicate'));
    expect(await createOnce(ref, { ...data, where: new copy.GeoPoint(1, 3) })).toEqual(conflict('orders/o', 'where'));
    expect(copy.Timestamp).not.toBe(Timestamp);
  });
});

describe('when Firestore does not say', () => {
  type Answer = 'made' | 'lost' | 'aborted' | 'failed' | 'silent';
  /** A reference whose creates are answered in the order given, the last one for ever. */
  function faulty(...answers: Answer[]) {
    let stored: object | undefined;
    const ref = {
      path: 'orders/o',
      creates: 0,
      async create(data: object): Promise<void> {
        ref.creates += 1;
        const answer = answers.length > 1 ? answers.shift() : answers[0];
        if (answer === 'silent') return new Promise(() => {});
        if (answer === 'made' || answer === 'lost') stored = data;
        if (answer === 'aborted') throw Object.assign(new Error('contention'), { code: 10 });
        if (answer !== 'made') throw Object.assign(new Error('unavailable'), { code: 14 });
      },
      get: async () => ({ exists: stored !== undefined, data: () => stored }),
    };
    return ref;
  }

  test.each<[Answer[], string, number]>([
    [['lost'], 'duplicate', 1],
    [['failed', 'made'], 'processed', 2],
    [['aborted', 'aborted', 'made'], 'processed', 3],
    [['failed', 'lost'], 'duplicate', 2],
  ])('the answers %j end as %s', async (answers, reason, creates) => {
    const system = manualSystem();
    const ref = faulty(...answers);
    expect(await settled(system, createOnce(ref, order, { system }))).toMatchObject({ kind: 'ack', reason });
    expect(ref.creates).toBe(creates);
  });

  test('a create that is never answered is given up when its time is over', async () => {
    const system = manualSystem();
    await expect(settled(system, createOnce(faulty('silent'), order, { system, storeTimeoutMs: 1_000 }))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: 'create orders/o: create gave no answer within 1000 ms',
    });
  });

  test('it is tried until the time is over, and then given back', async () => {
    const system = manualSystem();
    const startMs = system.clock.monotonicMs();
    const ref = faulty('failed');
    await expect(settled(system, createOnce(ref, order, { system, storeTimeoutMs: 1_000 }))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: 'create orders/o: unavailable',
    });
    expect(system.clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(1_000);
    expect(system.clock.monotonicMs() - startMs).toBeLessThan(1_200);
    expect(ref.creates).toBeGreaterThan(5);
  });
});
