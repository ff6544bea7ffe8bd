import { describe, expect, test } from 'vitest';
import { system } from '../../src/shared/adapters/system.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { StreamStore } from '../../src/shared/outbox/store.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { gate, manualSystem, settled } from '../support/manual-system.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const manual = manualSystem();
const timed = await firestoreDatabases(manual.time);
const unavailable = () => new ToolkitError('STORE_UNAVAILABLE', 'down');

describe.concurrent('sequencer on firestore: faults', () => {
  test.each(['answer-lost', 'fail-before'] as const)(
    'burns no number and uses none twice when a commit suffers %s, and publishes all the same',
    async (kind) => {
      const { sequencer, publisher, entries, counter, failCommits } = sequencing(databases, system);
      const { publish, flush } = sequencer();
      const given: number[] = [];
      for (const group of upTo(3)) {
        failCommits(kind, 1);
        const sequenced = await Promise.all(upTo(3).map((n) => publish(draft(`${group}-${n}`))));
        given.push(...sequenced.map(({ sequence }) => sequence));
        expect(sequenced.every(({ messageId }) => messageId)).toBe(true);
        await flush();
      }
      expect(given).toEqual(upTo(9));
      expect(publisher.numbers()).toEqual(upTo(9));
      expect(await counter()).toMatchObject({ next: 10, rev: 3 });
      expect((await entries()).map(({ state }) => state)).toEqual(Array(9).fill('published'));
    },
  );

  test.each([
    ['applied, and its answer lost for good', true],
    ['not applied', false],
  ])('a commit that was %s is looked up, and the message has one number', async (_, isApplied) => {
    const { sequencer, publisher, streams, entries, counter } = sequencing(databases, system);
    const store = streams();
    let faults = 1;
    const lossy: StreamStore = {
      ...store,
      async append(...args) {
        if (faults-- <= 0) return store.append(...args);
        if (isApplied) await store.append(...args);
        throw unavailable();
      },
    };
    const { publish } = sequencer({ streams: lossy });
    expect(await publish(draft('k1'))).toMatchObject({ sequence: 1, messageId: 'm1' });
    expect(await publish(draft('k2'))).toMatchObject({ sequence: 2, messageId: 'm2' });
    expect(publisher.numbers()).toEqual([1, 2]);
    expect(await entries()).toHaveLength(2);
    expect(await counter()).toMatchObject({ next: 3 });
  });

  test('the same key from a process that saw no answer gets the number of the first, and leaves the first to publish', async () => {
    const { sequencer, publisher, client, streams, entry } = sequencing(databases, system);
    const hold = gate();
    const slow = { publish: (...args: Parameters<typeof publisher.publish>) => hold.opened.then(() => publisher.publish(...args)) };
    const numbered = gate();
    const store = streams();
    const noticed: StreamStore = { ...store, append: (...args) => store.append(...args).finally(numbered.open) };
    const first = sequencer({ streams: noticed, publisher: slow }).publish(draft('k'));
    await numbered.opened;
    const again = await sequencer({ streams: streams(client()) }).publish(draft('k'));
    expect(again).toEqual({ key: 'k', epoch: again.epoch, sequence: 1 });
    expect(publisher.published).toEqual([]);
    expect(await entry('k')).toMatchObject({ state: 'pending' });
    hold.open();
    expect(await first).toMatchObject({ sequence: 1, messageId: 'm1' });
  });

  test('when a publish fails it and all that follows are left pending, and their numbers are known', async () => {
    const { sequencer, publisher, entries } = sequencing(databases, system);
    publisher.refusal = (_, [message]) => (message?.orderingKey === 'b' ? new ToolkitError('SERVICE_UNAVAILABLE', 'down') : undefined);
    const { publish, flush } = sequencer();
    const given = await Promise.all(['a', 'b', 'a'].map((orderingKey, index) => publish(draft(`k${index}`, { orderingKey }))));
    expect(given.map(({ sequence, messageId }) => [sequence, messageId])).toEqual([
      [1, 'm1'],
      [2, undefined],
      [3, undefined],
    ]);
    await flush();
    const states = (await entries()).map(({ seq, state, attempts }) => [seq, state, attempts]);
    expect(states.sort()).toEqual([
      [1, 'published', 0],
      [2, 'pending', 0],
      [3, 'pending', 0],
    ]);
  });

  test('a mark that fails is no failure of the publish, whose entry a relay will find', async () => {
    const { sequencer, streams, entry } = sequencing(databases, system);
    const { publish, flush } = sequencer({ streams: { ...streams(), markPublished: () => Promise.reject(unavailable()) } });
    expect(await publish(draft('k'))).toMatchObject({ sequence: 1, messageId: 'm1' });
    await flush();
    expect(await entry('k')).toMatchObject({ state: 'pending' });
  });
});

/** One after the other: they share a clock. */
describe('sequencer on firestore: time', () => {
  test('a topic that does not answer is left to the relay at half the time that the publisher has', async () => {
    const { sequencer, publisher } = sequencing(timed, manual);
    const beganAtMs = manual.clock.monotonicMs();
    const entered = gate();
    const hanging = {
      publish: () => {
        entered.open();
        return new Promise<never>(() => {});
      },
    };
    const { publish } = sequencer({ publisher: hanging, options: { handoffMs: 1_000 } });
    const left = publish(draft('k')).then((sequenced) => ({ sequenced, afterMs: manual.clock.monotonicMs() - beganAtMs }));
    await entered.opened;
    await manual.time.advance(5_000);
    expect(await left).toEqual({ sequenced: { key: 'k', epoch: expect.any(Number), sequence: 1 }, afterMs: 500 });
    expect(publisher.published).toEqual([]);
  });

  /** Has nothing, and takes what `append` lets through. */
  const emptyStreams = (append: StreamStore['append']): StreamStore => ({
    ...sequencing(timed, manual).streams(),
    look: async (_, group) => ({ state: { absentAtMs: 100 }, entries: group.map(() => undefined) }),
    append,
    markPublished: async () => {},
  });

  test('a store that stays away is named as such, not as contention', async () => {
    const { sequencer } = sequencing(timed, manual);
    const { publish } = sequencer({ streams: emptyStreams(() => Promise.reject(unavailable())) });
    await expect(settled(manual, publish(draft('k')))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('a counter that others always move first is STREAM_CONTENDED, which names the stream, and the next publish works', async () => {
    const { sequencer } = sequencing(timed, manual);
    let losses = 20;
    const streams = emptyStreams(async (_, { counter }) => (losses-- > 0 ? undefined : { counter, version: 'v' }));
    const { publish } = sequencer({ streams });
    await expect(settled(manual, publish(draft('k')))).rejects.toMatchObject({
      code: 'STREAM_CONTENDED',
      message: expect.stringContaining('stream s'),
    });
    expect(await settled(manual, publish(draft('k')))).toMatchObject({ sequence: 1 });
  });
});
