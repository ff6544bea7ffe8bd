import { Timestamp } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { system } from '../../src/shared/adapters/system.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { manualSystem, settled } from '../support/manual-system.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const manual = manualSystem();
const timed = await firestoreDatabases(manual.time);
const setUp = () => sequencing(databases, system);

describe.concurrent('sequencer on firestore', () => {
  test('numbers a stream from 1 and publishes each message with its place', async () => {
    const { sequencer, publisher } = setUp();
    const { publish } = sequencer();
    const first = await publish(draft('k1', { attributes: { colour: 'red' } }));
    expect(first).toEqual({ key: 'k1', epoch: expect.any(Number), sequence: 1, messageId: 'm1' });
    expect(await publish(draft('k2'))).toEqual({ ...first, key: 'k2', sequence: 2, messageId: 'm2' });
    const place = { 'ptk-stream': 's', 'ptk-seq': '1', 'ptk-epoch': `${first.epoch}` };
    expect(publisher.published[0]).toEqual({
      topic: 't',
      messageId: 'm1',
      message: {
        data: Buffer.from('k1'),
        attributes: { ...place, colour: 'red', 'ptk-key': 'k1', 'ptk-origin-time': expect.stringMatching(/^20.*Z$/) },
      },
    });
  });

  test('20 publishes at once to a new stream get 1 to 20, from one counter, published in order', async () => {
    const { sequencer, publisher, db, entries } = setUp();
    const { publish } = sequencer();
    const given = await Promise.all(upTo(20).map((n) => publish(draft(`k${n}`))));
    expect(given.map(({ sequence }) => sequence)).toEqual(upTo(20));
    expect(publisher.numbers()).toEqual(upTo(20));
    expect((await db.collection('ptk-streams').get()).docs.map((document) => document.get('next'))).toEqual([21]);
    expect(await entries()).toHaveLength(20);
  });

  test('two processes that publish 50 each to one stream get 1 to 100, each once', async () => {
    const { sequencer, publisher, client, streams, counter } = setUp();
    const processes = [sequencer(), sequencer({ streams: streams(client()) })];
    const given = await Promise.all(
      processes.map(async ({ publish }, process) => {
        const sequences: number[] = [];
        // Groups of 10, so that the two take turns at the counter.
        for (const group of upTo(5)) {
          const sequenced = await Promise.all(upTo(10).map((n) => publish(draft(`${process}-${group}-${n}`))));
          sequences.push(...sequenced.map(({ sequence }) => sequence));
        }
        return sequences;
      }),
    );
    expect(given.flat().sort((a, b) => a - b)).toEqual(upTo(100));
    expect(publisher.numbers().sort((a, b) => a - b)).toEqual(upTo(100));
    for (const sequences of given) expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
    expect(await counter()).toMatchObject({ next: 101, rev: 10 });
  });

  test('a key has one number and one entry, asked again at once, later, or by another process', async () => {
    const { sequencer, client, streams, entries, counter } = setUp();
    const one = sequencer();
    const other = sequencer({ streams: streams(client()) });
    const atOnce = await Promise.all([one, one, other].map(({ publish }) => publish(draft('k'))));
    const later = [await one.publish(draft('k')), await other.publish(draft('k')), await sequencer().publish(draft('k'))];
    for (const { key, sequence } of [...atOnce, ...later]) expect({ key, sequence }).toEqual({ key: 'k', sequence: 1 });
    expect(await entries()).toHaveLength(1);
    expect(await counter()).toMatchObject({ next: 2 });
    expect(await other.publish(draft('k2'))).toMatchObject({ sequence: 2 });
  });

  test('a group of old and new keys gives numbers to the new ones alone', async () => {
    const { sequencer, publisher } = setUp();
    const first = sequencer();
    await first.publish(draft('k1'));
    await first.flush();
    const { publish } = sequencer();
    const given = await Promise.all(['k2', 'k1', 'k3'].map((key) => publish(draft(key))));
    expect(given.map(({ sequence, messageId }) => [sequence, messageId])).toEqual([
      [2, 'm2'],
      [1, 'm1'],
      [3, 'm3'],
    ]);
    expect(publisher.numbers()).toEqual([1, 2, 3]);
  });

  test('streams have counters of their own, and neighbours of one ordering key share a request', async () => {
    const { sequencer, publisher } = setUp();
    const requests: number[] = [];
    publisher.refusal = (_, messages) => void requests.push(messages.length);
    const { publish } = sequencer();
    const orderingKeys = ['o', 'o', 'p', 'o'];
    await Promise.all(orderingKeys.map((orderingKey, index) => publish(draft(`k${index}`, { orderingKey }))));
    expect(requests).toEqual([2, 1, 1]);
    expect(await publish(draft('k', { stream: 'other' }))).toMatchObject({ sequence: 1 });
  });

  test('flush waits until what is published is also marked', async () => {
    const { sequencer, entries } = setUp();
    const { publish, flush } = sequencer();
    void publish(draft('k1'));
    await flush();
    expect(await entries()).toMatchObject([{ state: 'published' }]);
  });

  test.each([
    ['a message of 1,000,001 bytes with its key and stream', draft('k', { data: new Uint8Array(999_982) })],
    ['an attribute value of 1,025 bytes', draft('k', { attributes: { a: `${'é'.repeat(512)}x` } })],
    ['an attribute name of 257 bytes', draft('k', { attributes: { [`${'é'.repeat(128)}x`]: 'a' } })],
    ['a key of 1,025 bytes', draft('k'.repeat(1_025))],
    ['a stream name of 1,025 bytes', draft('k', { stream: 's'.repeat(1_025) })],
  ])('%s is refused before it is numbered', async (_, tooLarge) => {
    const { sequencer, db, entries } = setUp();
    await expect(sequencer().publish(tooLarge)).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE' });
    expect((await db.collection('ptk-streams').get()).size).toBe(0);
    expect(await entries()).toEqual([]);
  });

  test.each([
    ['an empty stream name', draft('k', { stream: '' })],
    ['a stream name that is no well-formed text', draft('k', { stream: '\ud800' })],
    ['a stream name that makes too long a document id', draft('k', { stream: '/'.repeat(501) })],
    ['an empty key', draft('')],
    ['86 attributes', draft('k', { attributes: Object.fromEntries(upTo(86).map((n) => [`a${n}`, ''])) })],
  ])('%s is refused before it is numbered, as malformed', async (_, malformed) => {
    const { sequencer, db } = setUp();
    await expect(sequencer().publish(malformed)).rejects.toMatchObject({ code: 'MALFORMED_MESSAGE' });
    expect((await db.collection('ptk-streams').get()).size).toBe(0);
  });

  test('the largest message allowed is numbered', async () => {
    const { sequencer, entry } = setUp();
    const largest = draft('k', { data: new Uint8Array(999_981 - 1_280), attributes: { [`${'é'.repeat(128)}`]: 'é'.repeat(512) } });
    const { publish, flush } = sequencer();
    expect(await publish(largest)).toMatchObject({ sequence: 1, messageId: 'm1' });
    await flush();
    expect(await entry('k')).toMatchObject({ state: 'published' });
  });
});

/** One after the other: they share a clock. */
describe('sequencer on firestore: what is stored', () => {
  const setUpTimed = () => sequencing(timed, manual);
  const stream = 'a/b.c~d_e é';
  const outboxId =
    '7e1b9e4aff22917d8ea813a30f59d54f7ba5f05efe7cd339fd0e29ec0c232a78~6ab9f1eb8f7d3388f4f9d586f66e99fd54080df2c446f0e58668b09c08a16dd0';

  test('the counter and a published entry, of which the number stays and the body goes', async () => {
    const { sequencer, db } = setUpTimed();
    const nowMs = manual.clock.nowMs();
    const { publish, flush } = sequencer();
    const { epoch } = await publish(draft('k1', { stream }));
    await flush();
    expect(epoch).toBe(nowMs);
    expect((await db.doc('ptk-streams/a%2Fb%2Ec%7Ed%5Fe%20%C3%A9').get()).data()).toEqual({ next: 2, epoch, rev: 1, topic: 't' });
    expect((await db.doc(`ptk-outbox/${outboxId}`).get()).data()).toEqual({
      state: 'published',
      stream,
      epoch,
      seq: 1,
      key: 'k1',
      topic: 't',
      message: null,
      attempts: 0,
      messageId: 'm1',
      shard: 14,
      expireAt: Timestamp.fromMillis(nowMs + 691_200_000),
    });
  });

  test('a pending entry, which has its message and the instant at which a relay may take it', async () => {
    const { sequencer, publisher, db } = setUpTimed();
    publisher.refusal = () => new ToolkitError('SERVICE_UNAVAILABLE', 'down');
    const nowMs = manual.clock.nowMs();
    const sequenced = await sequencer().publish(draft('k1', { stream, orderingKey: 'o' }));
    expect(sequenced).toEqual({ key: 'k1', epoch: nowMs, sequence: 1 });
    const place = { 'ptk-stream': stream, 'ptk-seq': '1', 'ptk-epoch': `${nowMs}` };
    const attributes = { ...place, 'ptk-key': 'k1', 'ptk-origin-time': new Date(nowMs).toISOString() };
    expect((await db.doc(`ptk-outbox/${outboxId}`).get()).data()).toEqual({
      state: 'pending',
      stream,
      epoch: nowMs,
      seq: 1,
      key: 'k1',
      topic: 't',
      message: { data: Buffer.from('k1'), attributes, orderingKey: 'o' },
      nextAttemptAt: Timestamp.fromMillis(nowMs + 30_000),
      attempts: 0,
      messageId: null,
      shard: 14,
    });
  });

  test('a counter that was deleted begins again at 1 in a later epoch', async () => {
    const { sequencer, db } = setUpTimed();
    const { publish } = sequencer();
    const before = await publish(draft('k1'));
    await db.doc('ptk-streams/s').delete();
    await manual.time.advance(1);
    const after = await settled(manual, publish(draft('k2')));
    expect(after.sequence).toBe(1);
    expect(after.epoch).toBeGreaterThan(before.epoch);
  });
});
