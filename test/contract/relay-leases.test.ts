import { describe, expect, test } from 'vitest';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { RelayLease } from '../../src/shared/outbox/decide.ts';
import type { Publisher, RecordStore } from '../../src/shared/ports.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { gate, manualSystem } from '../support/manual-system.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const manual = manualSystem();
const databases = await firestoreDatabases(manual.time);
const relayLeaseMs = 5_000;
const options = { relayLeaseMs };
/** Of a relay that the test has killed: what its timers find later is nobody's. */
const abandoned = (pass: Promise<unknown>) => void pass.catch(() => {});
const never = () => new Promise<never>(() => {});

/** As many entries as asked for, due, of a publisher that died before it published them. */
async function setUp(entries: number) {
  const parts = sequencing(databases, manual);
  const { publish } = parts.sequencer({ publisher: { publish: () => Promise.reject(new Error('dead')) } });
  await Promise.all(upTo(entries).map((n) => publish(draft(`k${n}`))));
  await manual.time.advance(30_000);
  const leases = firestoreRecordStore<RelayLease>(parts.db, manual.clock, 'ptk-relays');
  /** Leases of a relay that reaches the store for so many writes and no more. */
  const cutOffAfter = (puts: number): RecordStore<RelayLease> => {
    let left = puts;
    return { get: leases.get, put: (...args) => (left-- > 0 ? leases.put(...args) : never()) };
  };
  const firstCopies = () => [...new Set(parts.publisher.numbers())];
  return { ...parts, cutOffAfter, firstCopies };
}

describe('relays on firestore, one beside the other', () => {
  test('two at once publish everything, in order, and never work on one stream together', async () => {
    const { relay, publisher, client, streams } = await setUp(120);
    let atWork = 0;
    let mostAtWork = 0;
    const watched: Publisher = {
      async publish(...args) {
        mostAtWork = Math.max(mostAtWork, ++atWork);
        const ids = await publisher.publish(...args);
        await streams().pending('s', 1);
        atWork -= 1;
        return ids;
      },
    };
    const passes = await Promise.all([relay({ publisher: watched })(), relay({ publisher: watched, streams: streams(client()) })()]);
    expect(publisher.numbers()).toEqual(upTo(120));
    expect(passes.map(({ published }) => published).sort((a, b) => a - b)).toEqual([0, 120]);
    expect(mostAtWork).toBe(1);
  });

  test('a relay killed before it published keeps the stream for its lease and no longer', async () => {
    const { relay, publisher, cutOffAfter } = await setUp(3);
    const entered = gate();
    const hanging = {
      publish() {
        entered.open();
        return never();
      },
    };
    abandoned(relay({ leases: cutOffAfter(1), publisher: hanging, options })());
    await entered.opened;
    await manual.time.advance(relayLeaseMs - 1);
    expect(await relay({ options })()).toMatchObject({ published: 0 });
    await manual.time.advance(1);
    expect(await relay({ options })()).toMatchObject({ published: 3 });
    expect(publisher.numbers()).toEqual([1, 2, 3]);
  });

  test('one killed between publish and mark leaves copies, of the same keys and numbers', async () => {
    const { relay, publisher, cutOffAfter, streams, entries } = await setUp(3);
    const marking = gate();
    const dying = {
      ...streams(),
      markPublished() {
        marking.open();
        return never();
      },
    };
    abandoned(relay({ leases: cutOffAfter(1), streams: dying, options })());
    await marking.opened;
    await manual.time.advance(relayLeaseMs);
    expect(await relay({ options })()).toMatchObject({ published: 3 });
    expect(publisher.numbers()).toEqual([1, 2, 3, 1, 2, 3]);
    const [first, , , copy] = publisher.published;
    expect(copy?.message).toEqual(first?.message);
    expect((await entries()).map(({ state }) => state)).toEqual(['published', 'published', 'published']);
  });

  test('one that outlived its lease publishes no more than the request that it was at', async () => {
    const { relay, publisher, cutOffAfter, firstCopies, entries } = await setUp(150);
    const [entered, hold] = [gate(), gate()];
    const slow: Publisher = {
      async publish(...args) {
        entered.open();
        await hold.opened;
        return publisher.publish(...args);
      },
    };
    const outlived = relay({ leases: cutOffAfter(1), publisher: slow, options: { ...options, storeTimeoutMs: 100 } })();
    const ended = outlived.catch((error: unknown) => error);
    await entered.opened;
    await manual.time.advance(relayLeaseMs);
    expect(await relay({ options })()).toMatchObject({ published: 150 });
    hold.open();
    let isOver = false;
    void ended.then(() => {
      isOver = true;
    });
    while (!isOver) await manual.time.advance(50);
    expect(publisher.numbers()).toHaveLength(250);
    expect(firstCopies()).toEqual(upTo(150));
    expect((await entries()).filter(({ state }) => state !== 'published')).toEqual([]);
  });

  test('one whose stream another relay has taken stops after the request that it was at, however much is pending', async () => {
    const { relay, publisher, leases: relayLeases, cutOffAfter } = await setUp(150);
    const [entered, hold, taken] = [gate(), gate(), gate()];
    const slow: Publisher = {
      async publish(...args) {
        entered.open();
        await hold.opened;
        return publisher.publish(...args);
      },
    };
    // It can claim and be told that its lease is gone, and cannot renew meanwhile.
    const { put, get } = cutOffAfter(1);
    let isBack = false;
    const leases: RecordStore<RelayLease> = { get, put: (...args) => (isBack ? relayLeases.put(...args) : put(...args)) };
    const outlived = relay({ leases, publisher: slow, options: { ...options, storeTimeoutMs: 100 } })();
    await entered.opened;
    await manual.time.advance(relayLeaseMs);
    const hanging = {
      publish() {
        taken.open();
        return never();
      },
    };
    abandoned(relay({ publisher: hanging, options })());
    await taken.opened;
    isBack = true;
    hold.open();
    expect(await outlived).toMatchObject({ published: 100 });
    expect(publisher.numbers()).toEqual(upTo(100));
  });

  test('a mark that fails sets nothing back, and the next pass publishes copies', async () => {
    const { relay, publisher, streams, entry } = await setUp(2);
    const failing = { ...streams(), markPublished: () => Promise.reject(new ToolkitError('STORE_UNAVAILABLE', 'down')) };
    expect(await relay({ streams: failing })()).toMatchObject({ published: 0 });
    expect(await entry('k1')).toMatchObject({ state: 'pending', attempts: 1 });
    await manual.time.advance(1_000);
    expect(await relay()()).toMatchObject({ published: 2 });
    expect(publisher.numbers()).toEqual([1, 2, 1, 2]);
  });
});
