import { describe, expect, test } from 'vitest';
import { system } from '../../src/shared/adapters/system.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const setUp = () => sequencing(databases, system);
const other = (stream = 's', to = 'u') => ({
  code: 'MALFORMED_MESSAGE',
  message: `stream ${stream} is numbered for topic t, not ${to}: a stream has one topic`,
});

describe.concurrent('the topic of a stream', () => {
  test('is fixed by its first number: another one is refused before numbering, also by a process that did not know', async () => {
    const { sequencer, publisher, client, streams, counter } = setUp();
    const [one, two] = [sequencer(), sequencer({ streams: streams(client()) })];
    expect(await one.publish(draft('k1'))).toMatchObject({ sequence: 1 });
    await expect(one.publish(draft('k2', { topic: 'u' }))).rejects.toMatchObject(other());
    await expect(two.publish(draft('k3', { topic: 'u' }))).rejects.toMatchObject(other());
    expect(await two.publish(draft('k4'))).toMatchObject({ sequence: 2 });
    expect([await counter(), publisher.numbers()]).toEqual([expect.objectContaining({ next: 3, topic: 't' }), [1, 2]]);
  });

  test('is that of the first of a group; the others of the group get their numbers', async () => {
    const { sequencer } = setUp();
    const { publish } = sequencer();
    const topics = ['t', 'u', 't'];
    const given = await Promise.allSettled(topics.map((topic, index) => publish(draft(`k${index}`, { topic }))));
    expect(given).toEqual([
      { status: 'fulfilled', value: expect.objectContaining({ sequence: 1 }) },
      { status: 'rejected', reason: expect.objectContaining(other()) },
      { status: 'fulfilled', value: expect.objectContaining({ sequence: 2 }) },
    ]);
  });

  test('may be given by its short name or its full one', async () => {
    const { sequencer } = setUp();
    const { publish } = sequencer();
    await publish(draft('k1'));
    expect(await publish(draft('k2', { topic: 'projects/p/topics/t' }))).toMatchObject({ sequence: 2 });
    const elsewhere = 'projects/p/topics/not-t';
    await expect(publish(draft('k3', { topic: elsewhere }))).rejects.toMatchObject(other('s', elsewhere));
  });

  test('is taken by a counter that has none at its next number', async () => {
    const { sequencer, db, counter } = setUp();
    await db.doc('ptk-streams/s').set({ next: 8, epoch: 5, rev: 7 });
    expect(await sequencer().publish(draft('k'))).toMatchObject({ sequence: 8, epoch: 5 });
    expect(await counter()).toEqual({ next: 9, epoch: 5, rev: 8, topic: 't' });
  });

  test('is no concern of a message that is delayed, which comes to it by way of another topic', async () => {
    const { sequencer, counter } = setUp();
    const { publish } = sequencer();
    const delayed = { topic: 'later', delayMs: 60_000 };
    expect(await publish(draft('k1', delayed))).toMatchObject({ sequence: 1 });
    expect(await counter()).not.toHaveProperty('topic');
    expect(await publish(draft('k2'))).toMatchObject({ sequence: 2 });
    expect(await publish(draft('k3', delayed))).toMatchObject({ sequence: 3 });
    await expect(publish(draft('k4', { topic: 'later' }))).rejects.toMatchObject(other('s', 'later'));
  });

  test('is no concern of a message whose number does not go out', async () => {
    const { sequencer, outbox, db, counter, entries } = setUp();
    const add = (key: string, topic: string) => db.runTransaction((tx) => outbox().add(tx, draft(key, { topic })));
    await add('k1', 'u');
    expect(await counter()).toEqual({ next: 2, epoch: expect.any(Number), rev: 1 });
    await sequencer().publish(draft('k2'));
    await add('k3', 'u');
    expect(await counter()).toMatchObject({ next: 4, rev: 3, topic: 't' });
    expect(await entries()).toHaveLength(3);
  });
});

describe.concurrent('a counter that was edited by hand', () => {
  test.each([
    ['next is 0', { next: 0 }, 'next is 0, which is no whole number from 1'],
    ['next is a fraction', { next: 1.5 }, 'next is 1.5, which is no whole number from 1'],
    ['next is a text', { next: '7' }, 'next is a string, which is no whole number from 1'],
    ['next is gone', { next: undefined }, 'next is missing, which is no whole number from 1'],
    ['the epoch is a text', { epoch: '5' }, 'epoch is a string, which is no whole number'],
    ['rev is negative', { rev: -1 }, 'rev is -1, which is no whole number'],
    ['the topic is a number', { topic: 7 }, 'topic is 7, which is no name'],
  ])('so that %s is RECORD_UNREADABLE, which names the document, and nothing is numbered', async (_, edit, why) => {
    const { sequencer, db, entries } = setUp();
    const fields = Object.entries({ next: 7, epoch: 5, rev: 6, ...edit }).filter(([, value]) => value !== undefined);
    await db.doc('ptk-streams/s').set(Object.fromEntries(fields));
    await expect(sequencer().publish(draft('k'))).rejects.toMatchObject({
      code: 'RECORD_UNREADABLE',
      message: `the document ptk-streams/s is no counter of a stream: ${why}`,
    });
    expect(await entries()).toEqual([]);
  });

  test('forward goes on from there: the numbers between are missing, and theirs to explain who did it', async () => {
    const { sequencer, db } = setUp();
    const { publish } = sequencer();
    await publish(draft('k1'));
    await db.doc('ptk-streams/s').update({ next: 10 });
    expect(await publish(draft('k2'))).toMatchObject({ sequence: 10 });
  });

  test('back is refused by a publisher that remembers higher numbers, until the counter is deleted', async () => {
    const { sequencer, db } = setUp();
    const { publish } = sequencer();
    const [first] = await Promise.all(upTo(5).map((n) => publish(draft(`k${n}`))));
    await db.doc('ptk-streams/s').update({ next: 2 });
    for (const key of ['k6', 'k7']) await expect(publish(draft(key))).rejects.toMatchObject({ code: 'RECORD_UNREADABLE' });
    await db.doc('ptk-streams/s').delete();
    const after = await publish(draft('k8'));
    expect(after.sequence).toBe(1);
    expect(after.epoch).toBeGreaterThan(first?.epoch ?? 0);
  });

  test('back is believed by one that has just started: numbers are given again, which the consumer reports', async () => {
    const { sequencer, db, publisher } = setUp();
    await sequencer().publish(draft('k1'));
    await sequencer().publish(draft('k2'));
    await db.doc('ptk-streams/s').update({ next: 2 });
    expect(await sequencer().publish(draft('k3'))).toMatchObject({ sequence: 2 });
    expect(publisher.numbers()).toEqual([1, 2, 2]);
  });
});
