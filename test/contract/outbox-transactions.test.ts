import { describe, expect, test } from 'vitest';
import { system } from '../../src/shared/adapters/system.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { secondFirestore } from '../support/second-firestore.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();

function setUp() {
  const parts = sequencing(databases, system);
  const order = parts.db.doc('orders/17');
  return {
    ...parts,
    order,
    orderedAt: async () => (await order.get()).get('state'),
    /** Numbers in a transaction that also writes the order. */
    within: (...keys: string[]) =>
      parts.db.runTransaction(async (tx) => {
        const given = await parts.sequencer().publishWithin(
          tx,
          keys.map((key) => draft(key)),
        );
        tx.set(order, { state: 'ordered' });
        return given;
      }),
  };
}

describe.concurrent('publishWithin', () => {
  test('gives consecutive numbers that are there if the transaction is, and leaves the publishing to the relay, at once', async () => {
    const { within, sequencer, relay, publisher, entries, orderedAt } = setUp();
    const { publish, flush } = sequencer();
    await publish(draft('k1'));
    await flush();
    const given = await within('k2', 'k3');
    expect(given.map(({ key, sequence, messageId }) => [key, sequence, messageId])).toEqual([
      ['k2', 2, undefined],
      ['k3', 3, undefined],
    ]);
    expect([await orderedAt(), publisher.numbers()]).toEqual(['ordered', [1]]);
    expect(await relay()()).toMatchObject({ published: 2, streams: 1 });
    expect(publisher.numbers()).toEqual([1, 2, 3]);
    expect((await entries()).map(({ state }) => state)).toEqual(['published', 'published', 'published']);
    expect(await publish(draft('k4'))).toMatchObject({ sequence: 4 });
  });

  test('numbers nothing where the transaction is not committed', async () => {
    const { db, sequencer, counter, entries } = setUp();
    const failing = db.runTransaction(async (tx) => {
      await sequencer().publishWithin(tx, draft('k1'));
      throw new Error('out of stock');
    });
    await expect(failing).rejects.toThrow('out of stock');
    expect([await counter(), await entries()]).toEqual([undefined, []]);
  });

  test('gives a key the number that it has, and writes nothing for it', async () => {
    const { within, db, sequencer, counter } = setUp();
    await sequencer().publish(draft('k1'));
    const again = await within('k1');
    expect(again).toMatchObject([{ key: 'k1', sequence: 1 }]);
    expect(await counter()).toMatchObject({ next: 2, rev: 1 });
    const mixed = await within('k1', 'k2');
    expect(mixed.map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect(await db.runTransaction((tx) => sequencer().publishWithin(tx, draft('k2')))).toMatchObject({ key: 'k2', sequence: 2 });
  });

  test('and a publisher at the same time give each message a number of its own, whoever is first', async () => {
    const { db, sequencer, publisher, relay, entries } = setUp();
    const other = sequencer();
    await other.publish(draft('k1'));
    let meanwhile: Promise<unknown> | undefined;
    await db.runTransaction(async (tx) => {
      await sequencer().publishWithin(tx, draft('a'));
      meanwhile ??= other.publish(draft('b'));
    });
    await meanwhile;
    await other.flush();
    await relay()();
    expect(publisher.numbers().sort()).toEqual([1, 2, 3]);
    expect((await entries()).map(({ key, seq, state }) => [key, seq, state]).sort()).toEqual([
      ['a', expect.any(Number), 'published'],
      ['b', expect.any(Number), 'published'],
      ['k1', 1, 'published'],
    ]);
  });

  test('of several streams at once', async () => {
    const { db, sequencer } = setUp();
    const drafts = ['s1', 's2', 's1'].map((stream, index) => draft(`k${index}`, { stream }));
    const given = await db.runTransaction((tx) => sequencer().publishWithin(tx, drafts));
    expect(given.map(({ sequence }) => sequence)).toEqual([1, 1, 2]);
  });

  test.each([
    ['without a key of its own', draft('k', { key: undefined } as never), 'the transaction may run more than once'],
    ['for another topic than its stream', draft('k', { topic: 'u' }), 'stream s is numbered for topic t, not u'],
    ['with an empty stream', draft('k', { stream: '' }), 'ptk-stream is empty'],
    ['with a stream of 2,000 characters', draft('k', { stream: 'x'.repeat(2_000) }), 'a document id of 2000 bytes is needed'],
  ])('a message %s is MALFORMED_MESSAGE, and nothing is committed', async (_, wrong, why) => {
    const { db, sequencer, counter } = setUp();
    await sequencer().publish(draft('k0'));
    const numbering = db.runTransaction((tx) => sequencer().publishWithin(tx, wrong));
    await expect(numbering).rejects.toMatchObject({ code: 'MALFORMED_MESSAGE', message: expect.stringContaining(why) });
    expect(await counter()).toMatchObject({ next: 2 });
  });

  test('a second call, or one after a write, is told that reads come before writes', async () => {
    const { db, sequencer, counter } = setUp();
    const twice = db.runTransaction(async (tx) => {
      await sequencer().publishWithin(tx, draft('k1'));
      await sequencer().publishWithin(tx, draft('k2'));
    });
    await expect(twice).rejects.toThrow(
      /^ptk-streams\/s cannot be read .*all reads come before all writes; several messages are given in one call/,
    );
    expect(await counter()).toBeUndefined();
  });

  test('flush publishes them, without waiting for a relay, unless one holds the stream', async () => {
    const { within, sequencer, leases, publisher } = setUp();
    await within('k1', 'k2');
    await sequencer({ leases }).flush('s');
    expect(publisher.numbers()).toEqual([1, 2]);
    await within('k3');
    const held = await leases.get('043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89');
    await leases.put(
      `043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89`,
      { rev: 9, runId: 'other', leaseMs: 30_000 },
      held?.version ?? '',
      'forever',
    );
    await sequencer({ leases }).flush('s');
    expect(publisher.numbers()).toEqual([1, 2]);
    await expect(sequencer().flush('s')).rejects.toMatchObject({ code: 'INVALID_SETTINGS' });
  });
});

describe.concurrent('outbox', () => {
  test('with a stream it publishes in the order in which it was added, over all transactions, and no number goes out', async () => {
    const { db, outbox, relay, publisher, entries } = setUp();
    for (const n of upTo(3)) {
      await db.runTransaction((tx) => outbox().add(tx, [draft(`${n}a`, { topic: n === 2 ? 'u' : 't' }), draft(`${n}b`)]));
    }
    expect(await relay()()).toMatchObject({ published: 6 });
    expect(publisher.published.map(({ topic, message }) => [topic, message.attributes])).toEqual([
      ['t', { 'ptk-key': '1a' }],
      ['t', { 'ptk-key': '1b' }],
      ['u', { 'ptk-key': '2a' }],
      ['t', { 'ptk-key': '2b' }],
      ['t', { 'ptk-key': '3a' }],
      ['t', { 'ptk-key': '3b' }],
    ]);
    expect((await entries()).map(({ seq }) => seq).sort()).toEqual(upTo(6));
  });

  test('without a stream it needs neither counter nor read, so it may come after writes', async () => {
    const { db, order, outbox, relay, publisher, counter } = setUp();
    await db.runTransaction(async (tx) => {
      tx.set(order, { state: 'ordered' });
      await outbox().add(tx, { topic: 't', key: 'k', data: Buffer.from('x') });
    });
    expect(await relay()()).toMatchObject({ published: 1 });
    expect(publisher.published[0]?.message).toEqual({ data: Buffer.from('x'), attributes: { 'ptk-key': 'k' } });
    expect([await counter(), (await db.collection('ptk-relays').get()).size]).toEqual([undefined, 0]);
  });

  test('a message needs a key of its own', async () => {
    const { db, outbox } = setUp();
    const keyless = db.runTransaction((tx) => outbox().add(tx, { topic: 't', data: Buffer.from('x') }));
    await expect(keyless).rejects.toMatchObject({ code: 'MALFORMED_MESSAGE', message: expect.stringContaining('needs a key of its own') });
  });

  test('what a stream refuses for good is dead without a tombstone, since no number went out', async () => {
    const { db, outbox, relay, publisher, entry } = setUp();
    await db.runTransaction((tx) => outbox().add(tx, [draft('k1'), draft('k2')]));
    const refused = Object.assign(new Error('refused'), { code: 'REFUSED' });
    publisher.refusal = (_, messages) => (messages.some(({ attributes }) => attributes['ptk-key'] === 'k1') ? refused : undefined);
    expect(await relay()()).toMatchObject({ published: 1, dead: 1 });
    expect(publisher.published.map(({ message }) => message.attributes)).toEqual([{ 'ptk-key': 'k2' }]);
    expect(await entry('k1')).toMatchObject({ state: 'dead', nextAttemptAt: null });
  });

  test('works with a second copy of the Firestore client, as firebase-admin brings one', async () => {
    const parts = sequencing(databases, system);
    const { db } = secondFirestore(databases, databases.open().projectId);
    const streams = parts.streams(db);
    const { publish, flush } = parts.sequencer({ streams });
    await publish(draft('k1'));
    await publish(draft('k2'));
    await flush();
    await db.runTransaction((tx) => parts.outbox(db).add(tx, [draft('k3'), { topic: 't', key: 'k', data: Buffer.of() }]));
    expect(await parts.relay({ streams })()).toMatchObject({ published: 2 });
    const states = (await db.collection('ptk-outbox').get()).docs.map((document) => document.get('state'));
    expect(states).toEqual(['published', 'published', 'published', 'published']);
  });
});
