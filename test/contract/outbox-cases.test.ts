import type { Transaction } from '@google-cloud/firestore';
import { describe, expect, test, vi } from 'vitest';
import { firestoreInbox, firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { createInbox } from '../../src/shared/dedup/inbox.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { gate } from '../support/manual-system.ts';
import { failing, outboxTopics } from '../support/outbox-topics.ts';
import { upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const setUp = outboxTopics(databases);

/** Faults that people have met, by their numbers in the catalogue of the issue; with real clients of both services. */
describe('outbox and publishers', () => {
  test('35: a publish whose answer is lost twice is three messages of one key, and one run of the handler', async () => {
    const { sequencer, draft, received, db } = await setUp();
    databases.emulator.faults.add({ kind: 'answer-lost', rpc: 'Publisher.Publish', times: 2 });
    const given = await sequencer().publish(draft('k'));
    expect(given).toMatchObject({ sequence: 1, messageId: expect.any(String) });
    await vi.waitFor(() => expect(received).toHaveLength(3), 10_000);
    expect(new Set(received.map(({ messageId }) => messageId)).size).toBe(3);
    expect(new Set(received.map(({ key, seq }) => `${key} ${seq}`))).toEqual(new Set(['k 1']));
    let runs = 0;
    const store = firestoreRecordStore<DedupRecord>(db, system.clock, 'ptk-dedup');
    const handle = createDedup({ consumer: 'c', store, system, log: silentLog })(async () => void runs++);
    for (const { messageId, key, data } of received) {
      const message = testMessage({ messageId, attributes: { 'ptk-key': key }, data });
      await handle(message, { signal: new AbortController().signal });
    }
    expect(runs).toBe(1);
  });

  test('36: a failed publish pauses no ordering key: 1 fails once, then 1, 2, 3 come in order, and later ones too', async () => {
    const { sequencer, relay, publisher, draft, seqs } = await setUp({ enableMessageOrdering: true });
    const { publish } = sequencer({ topicOrder: 'strict', orderingKey: 'stream' });
    const pass = relay({ publisher: failing(publisher, 1) });
    await publish(draft('k1'));
    expect(await pass()).toMatchObject({ published: 0, failed: 1 });
    await Promise.all([publish(draft('k2')), publish(draft('k3'))]);
    await vi.waitFor(async () => expect((await pass()).published).toBe(3), 5_000);
    await publish(draft('k4'));
    expect(await pass()).toMatchObject({ published: 1 });
    await vi.waitFor(() => expect(seqs()).toEqual([1, 2, 3, 4]), 5_000);
  });

  test('38: a number that is given first and committed late is neither skipped nor overtaken', async () => {
    const { sequencer, relay, db, draft, entries, seqs } = await setUp();
    const strict = sequencer({ topicOrder: 'strict' });
    await Promise.all(upTo(3).map((n) => strict.publish(draft(`k${n}`))));
    const [numbered, polled] = [gate(), gate()];
    const late = db.runTransaction(async (tx) => {
      const given = await strict.publishWithin(tx, draft('late'));
      numbered.open();
      await polled.opened;
      return given;
    });
    await numbered.opened;
    const other = strict.publish(draft('other'));
    expect(await relay()()).toMatchObject({ published: 3 });
    polled.open();
    const given = [await late, await other].map(({ sequence }) => sequence);
    expect(given.toSorted()).toEqual([4, 5]);
    expect(await relay()()).toMatchObject({ published: 2 });
    expect((await entries()).map(({ state }) => state)).toEqual(Array(5).fill('published'));
    await vi.waitFor(() => expect(seqs().toSorted()).toEqual(upTo(5)), 5_000);
  });

  test('38: the first of one stream fails: its second waits behind it, and another stream flows', async () => {
    const { sequencer, relay, publisher, draft, received } = await setUp();
    const strict = sequencer({ topicOrder: 'strict' });
    for (const key of ['a1', 'a2']) await strict.publish(draft(key, { stream: 'a' }));
    const pass = relay({ publisher: failing(publisher, 1) });
    expect(await pass()).toMatchObject({ published: 0, failed: 1 });
    await strict.publish(draft('b1', { stream: 'b' }));
    expect(await pass()).toMatchObject({ published: 1 });
    await vi.waitFor(() => expect(received.map(({ key }) => key)).toEqual(['b1']), 5_000);
    await vi.waitFor(async () => expect((await pass()).published).toBe(2), 5_000);
    await vi.waitFor(() => expect(received.map(({ key }) => key).toSorted()).toEqual(['a1', 'a2', 'b1']), 5_000);
  });

  test('39: a relay that publishes and does not mark makes a copy, of the same key and number', async () => {
    const { sequencer, relay, streams, draft, received } = await setUp();
    await sequencer({ topicOrder: 'strict' }).publish(draft('k'));
    const store = streams();
    let faults = 1;
    const markless: typeof store = {
      ...store,
      async markPublished(...args) {
        if (faults-- > 0) throw new Error('the store is down');
        await store.markPublished(...args);
      },
    };
    const pass = relay({ streams: markless });
    expect(await pass()).toMatchObject({ published: 0, failed: 1 });
    await vi.waitFor(async () => expect((await pass()).published).toBe(1), 5_000);
    await vi.waitFor(() => expect(received).toHaveLength(2), 5_000);
    expect(received.map(({ key, seq, data }) => [key, seq, data])).toEqual([
      ['k', 1, 'k'],
      ['k', 1, 'k'],
    ]);
  });

  test('42: what an inbox handler sends and then throws, twice, is received once in the end', async () => {
    const { outbox, relay, db, topic, received } = await setUp();
    let runs = 0;
    const handle = createInbox<Transaction>({
      consumer: 'c',
      store: firestoreInbox(db, system.clock, 'ptk-dedup'),
      outbox: outbox(),
      system,
      log: silentLog,
    })(async (_, { send }) => {
      await send({ topic, data: Buffer.from('receipt') });
      if (++runs < 3) throw new Error('not yet');
    });
    const message = testMessage({ attributes: { 'ptk-key': 'k' } });
    for (const verdict of ['failed', 'failed', 'processed', 'duplicate']) {
      expect(await handle(message, { signal: new AbortController().signal })).toMatchObject({ reason: verdict });
      await relay()();
    }
    await vi.waitFor(() => expect(received.map(({ key, data }) => [key, data])).toEqual([['k>0', 'receipt']]), 5_000);
  });

  test('42: a publish is told only once the service has the message, however long that takes', async () => {
    const { sequencer, draft, received } = await setUp();
    databases.emulator.faults.add({ kind: 'slow-call', rpc: 'Publisher.Publish', times: 1, delayMs: 300 });
    const startedAtMs = performance.now();
    const { messageId } = await sequencer().publish(draft('k'));
    expect(performance.now() - startedAtMs).toBeGreaterThan(290);
    await vi.waitFor(() => expect(received.map((message) => message.messageId)).toEqual([messageId]), 5_000);
  });
});
