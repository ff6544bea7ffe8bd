import { describe, expect, test } from 'vitest';
import { system } from '../../src/shared/adapters/system.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { StreamStore } from '../../src/shared/outbox/store.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const setUp = () => sequencing(databases, system);
const down = new ToolkitError('SERVICE_UNAVAILABLE', 'down');

describe.concurrent('direct mode', () => {
  test('numbers and publishes, and writes no entries', async () => {
    const { sequencer, publisher, entries, counter } = setUp();
    const { publish } = sequencer({ mode: 'direct' });
    const given = await Promise.all(upTo(3).map((n) => publish(draft(`k${n}`))));
    expect(given.map(({ sequence, messageId }) => [sequence, messageId])).toEqual([
      [1, 'm1'],
      [2, 'm2'],
      [3, 'm3'],
    ]);
    expect(publisher.numbers()).toEqual([1, 2, 3]);
    expect([await entries(), await counter()]).toMatchObject([[], { next: 4, topic: 't' }]);
  });

  test('shares its counter with publishers that have entries', async () => {
    const { sequencer, client, streams } = setUp();
    const [direct, other] = [sequencer({ mode: 'direct' }), sequencer({ streams: streams(client()) })];
    const given = [await direct.publish(draft('a')), await other.publish(draft('b')), await direct.publish(draft('c'))];
    expect(given.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  });

  test.each(['answer-lost', 'fail-before'] as const)('gives no number twice and misses none when a commit suffers %s', async (kind) => {
    const { sequencer, publisher, failCommits, counter } = setUp();
    const { publish } = sequencer({ mode: 'direct' });
    await publish(draft('k1'));
    failCommits(kind, 1);
    expect((await Promise.all([publish(draft('k2')), publish(draft('k3'))])).map(({ sequence }) => sequence)).toEqual([2, 3]);
    expect(publisher.numbers()).toEqual([1, 2, 3]);
    expect(await counter()).toMatchObject({ next: 4, rev: 2 });
  });

  test.each([
    ['outbox', 2, [1, 3, 2]],
    ['direct', 4, [1, 3, 4]],
  ] as const)(
    'after an answer that was lost for good the counter tells, unless a direct publisher was next (%s): then the number is missing',
    async (mode, sequence, numbers) => {
      const { sequencer, publisher, client, streams } = setUp();
      const other = sequencer({ streams: streams(client()), mode });
      await other.publish(draft('k1'));
      const store = streams();
      let faults = 1;
      const lossy: StreamStore = {
        ...store,
        async append(...args) {
          const applied = await store.append(...args);
          if (faults-- <= 0) return applied;
          await other.publish(draft('k3'));
          throw new ToolkitError('STORE_UNAVAILABLE', 'the answer was lost');
        },
      };
      expect(await sequencer({ mode: 'direct', streams: lossy }).publish(draft('k2'))).toMatchObject({ sequence });
      expect(publisher.numbers()).toEqual(numbers);
    },
  );

  test('a message that is not published is told by the number that is missing now; what follows is published', async () => {
    const { sequencer, publisher } = setUp();
    const { publish } = sequencer({ mode: 'direct' });
    publisher.refusal = (_, [message]) => (message?.orderingKey === 'b' ? down : undefined);
    const given = await Promise.allSettled(['a', 'b', 'a'].map((orderingKey, index) => publish(draft(`k${index}`, { orderingKey }))));
    expect(given).toEqual([
      { status: 'fulfilled', value: expect.objectContaining({ sequence: 1 }) },
      {
        status: 'rejected',
        reason: expect.objectContaining({
          code: 'SERVICE_UNAVAILABLE',
          message: expect.stringMatching(/^number 2 of stream s \(epoch \d+\) is not published: down$/),
        }),
      },
      { status: 'fulfilled', value: expect.objectContaining({ sequence: 3 }) },
    ]);
    expect(publisher.numbers()).toEqual([1, 3]);
  });

  test('of a group that is refused each is tried alone, and a tombstone takes the number of the one that is meant', async () => {
    const { sequencer, publisher } = setUp();
    const { publish } = sequencer({ mode: 'direct' });
    publisher.refusal = (_, messages) =>
      messages.some(({ attributes }) => attributes['ptk-key'] === 'k2' && !attributes['ptk-tombstone'])
        ? new ToolkitError('REFUSED', 'no')
        : undefined;
    const given = await Promise.allSettled(upTo(3).map((n) => publish(draft(`k${n}`))));
    expect(given.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(given[1]).toMatchObject({ reason: { code: 'REFUSED', message: expect.stringMatching(/^number 2 of stream s /) } });
    expect(publisher.published.map(({ message: { attributes } }) => [attributes['ptk-seq'], attributes['ptk-tombstone']])).toEqual([
      ['1', undefined],
      ['2', 'refused'],
      ['3', undefined],
    ]);
  });

  test('has no transactions, and no strict order: both need a relay', async () => {
    const { sequencer, db } = setUp();
    const { publishWithin } = sequencer({ mode: 'direct' });
    await expect(db.runTransaction((tx) => publishWithin(tx, draft('k')))).rejects.toMatchObject({ code: 'INVALID_SETTINGS' });
    expect(() => sequencer({ mode: 'direct', topicOrder: 'strict' })).toThrow('topicOrder "strict" needs mode "outbox"');
  });
});

describe.concurrent('what a publisher may ask for', () => {
  test('strict order: only the relay publishes, and may at once', async () => {
    const { sequencer, relay, publisher } = setUp();
    const { publish } = sequencer({ topicOrder: 'strict' });
    const given = await Promise.all(upTo(3).map((n) => publish(draft(`k${n}`))));
    expect(given.map(({ sequence, messageId }) => [sequence, messageId])).toEqual([
      [1, undefined],
      [2, undefined],
      [3, undefined],
    ]);
    expect(publisher.published).toEqual([]);
    expect(await relay()()).toMatchObject({ published: 3 });
    expect(publisher.numbers()).toEqual([1, 2, 3]);
  });

  test('the stream for an ordering key, which it is not by itself', async () => {
    const { sequencer, db, publisher, relay } = setUp();
    await sequencer().publish(draft('k1'));
    const { publish, publishWithin } = sequencer({ orderingKey: 'stream' });
    await publish(draft('k2', { orderingKey: 'mine' }));
    await db.runTransaction((tx) => publishWithin(tx, draft('k3')));
    await relay()();
    expect(publisher.published.map(({ message }) => message.orderingKey)).toEqual([undefined, 's', 's']);
  });

  test('that bodies are kept: then a stub has its message, whoever published it', async () => {
    const { sequencer, db, relay, streams } = setUp();
    const { publish, publishWithin, flush } = sequencer({ keepBodies: true });
    const { epoch } = await publish(draft('k1'));
    await flush();
    await db.runTransaction((tx) => publishWithin(tx, draft('k2')));
    await relay()();
    const plain = sequencer();
    await plain.publish(draft('k3'));
    await plain.flush();
    const found = await Promise.all(upTo(4).map((seq) => streams().find('s', epoch, seq)));
    expect(found.map((entry) => entry && [entry.key, entry.state, entry.message && `${entry.message.data}`])).toEqual([
      ['k1', 'published', 'k1'],
      ['k2', 'published', 'k2'],
      ['k3', 'published', null],
      undefined,
    ]);
    expect(await streams().find('s', epoch + 1, 1)).toBeUndefined();
  });
});

describe.concurrent('closing a sequencer', () => {
  test('ends what is under way, its marks included, and refuses what comes later without numbering it', async () => {
    const { sequencer, entries, counter } = setUp();
    const { publish, close } = sequencer();
    const early = Promise.all(upTo(3).map((n) => publish(draft(`k${n}`))));
    await close();
    expect((await early).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect((await entries()).map(({ state }) => state)).toEqual(['published', 'published', 'published']);
    await expect(publish(draft('late'))).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(await counter()).toMatchObject({ next: 4 });
  });
});
