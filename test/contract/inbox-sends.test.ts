import type { Transaction } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { firestoreInbox } from '../../src/shared/adapters/firestore.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createInbox, type InboxContext, type InboxParts } from '../../src/shared/dedup/inbox.ts';
import type { Handler, Log } from '../../src/shared/ports.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { sequencing } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const message = testMessage({ attributes: { 'ptk-key': 'k' }, data: 'payment' });
const deliver = (handle: (of: typeof message, context: { signal: AbortSignal }) => Promise<unknown>, of = message) =>
  handle(of, { signal: new AbortController().signal });

function setUp() {
  const parts = sequencing(databases, system);
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (fields) => warnings.push(JSON.stringify(fields)) };
  const inbox = (handle: Handler<InboxContext<Transaction>>, more: Partial<InboxParts<Transaction>> = {}) =>
    createInbox({
      consumer: 'c',
      store: firestoreInbox(parts.db, system.clock, 'ptk-dedup'),
      outbox: parts.outbox(),
      system,
      log,
      ...more,
    })(handle);
  const sent = () => parts.publisher.published.map(({ topic, message: { data, attributes } }) => [topic, `${data}`, attributes]);
  return { ...parts, warnings, inbox, sent };
}

const out = (data: string, more: object = {}) => ({ topic: 't', data: Buffer.from(data), ...more });

describe.concurrent('what an inbox handler sends', () => {
  test('goes out once, though the handler throws twice after it sent, and then succeeds', async () => {
    const { inbox, relay, sent, entries } = setUp();
    let runs = 0;
    const handle = inbox(async (_, { send }) => {
      await send(out('receipt', { attributes: { colour: 'red' } }));
      if (++runs < 3) throw new Error('not yet');
    });
    expect([await deliver(handle), await deliver(handle)]).toEqual([nack('failed'), nack('failed')]);
    expect([await entries(), await relay()()]).toMatchObject([[], { published: 0 }]);
    expect(await deliver(handle)).toEqual(ack('processed'));
    expect(await deliver(handle)).toEqual(ack('duplicate'));
    expect([await relay()(), await relay()()]).toMatchObject([{ published: 1 }, { published: 0 }]);
    expect(sent()).toEqual([['t', 'receipt', { 'ptk-key': 'k>0', colour: 'red' }]]);
  });

  test('has keys by its place among what is sent, and may come after the handler’s writes', async () => {
    const { db, inbox, relay, sent } = setUp();
    const keys: string[] = [];
    const handle = inbox(async (_, { send, transaction }) => {
      transaction.set(db.doc('accounts/a'), { balance: 10 });
      for (const topic of ['t', 'u', 't']) keys.push((await send(out(topic, { topic }))).key);
    });
    expect(await deliver(handle)).toEqual(ack('processed'));
    await relay()();
    expect(keys).toEqual(['k>0', 'k>1', 'k>2']);
    expect(
      sent()
        .map(([topic, , attributes]) => [topic, attributes])
        .sort(),
    ).toEqual([
      ['t', { 'ptk-key': 'k>0' }],
      ['t', { 'ptk-key': 'k>2' }],
      ['u', { 'ptk-key': 'k>1' }],
    ]);
  });

  test('in a stream goes out in order, whether the handler waits for it or not', async () => {
    const { db, inbox, relay, sent } = setUp();
    const handle = inbox(async (_, { send, transaction }) => {
      await send(out('1', { stream: 's' }));
      await send(out('2', { stream: 's' }));
      void send(out('3', { stream: 's' }));
      transaction.set(db.doc('accounts/a'), { balance: 10 });
    });
    expect(await deliver(handle)).toEqual(ack('processed'));
    await relay()();
    expect(sent().map(([, data]) => data)).toEqual(['1', '2', '3']);
  });

  test('is not sent where the handler’s verdict is no ack', async () => {
    const { inbox, entries } = setUp();
    const handle = inbox(async (_, { send }) => {
      await send(out('receipt'));
      return nack('early');
    });
    expect(await deliver(handle)).toEqual(nack('early'));
    expect(await entries()).toEqual([]);
  });

  test('of two consumers of one message is sent by both, though the keys are the same', async () => {
    const { inbox, relay, sent } = setUp();
    for (const consumer of ['a', 'b']) await deliver(inbox(async (_, { send }) => void (await send(out(consumer))), { consumer }));
    await relay()();
    expect(
      sent()
        .map(([, data]) => data)
        .sort(),
    ).toEqual(['a', 'b']);
  });

  test('under a key that takes 1,024 bytes has a digest for a key', async () => {
    const { inbox, relay, sent } = setUp();
    const long = testMessage({ attributes: { 'ptk-key': 'k'.repeat(1_024) } });
    expect(
      await deliver(
        inbox(async (_, { send }) => void (await send(out('x')))),
        long,
      ),
    ).toEqual(ack('processed'));
    await relay()();
    expect(sent()).toEqual([['t', 'x', { 'ptk-key': expect.stringMatching(/^sha256:[\da-f]{64}$/) }]]);
  });

  test('needs an outbox, which is told', async () => {
    const { db, warnings } = setUp();
    const parts = { consumer: 'c', store: firestoreInbox(db, system.clock, 'ptk-dedup'), system };
    const log: Log = { ...silentLog, warn: (fields) => warnings.push(JSON.stringify(fields)) };
    const handle = createInbox<Transaction>({ ...parts, log })(async (_, { send }) => void (await send(out('x'))));
    expect(await deliver(handle)).toEqual(nack('failed'));
    expect(warnings).toEqual([expect.stringContaining('needs an inbox with an outbox')]);
  });
});
