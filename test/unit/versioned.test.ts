import { describe, expect, test } from 'vitest';
import { memoryVersionedDocuments } from '../../src/shared/adapters/memory-documents.ts';
import {
  type Apply,
  createVersioned,
  type Marked,
  type VersionedDocuments,
  type VersionedParts,
} from '../../src/shared/dedup/versioned.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { ack, deadLetter, nack } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { gate, manualSystem, settled } from '../support/manual-system.ts';

type Account = { readonly balance: number };
type Documents = VersionedDocuments<Marked<Account>>;

const context = () => ({ signal: new AbortController().signal });
const payment = (key: string, publishTimeMs?: number, attributes = {}) =>
  testMessage({ attributes: { 'ptk-key': key, ...attributes }, publishTimeMs });
const adding: Apply<Account> = (_, account) => ({ balance: (account?.balance ?? 0) + 10 });

function setUp(parts: Partial<VersionedParts<Account>> = {}) {
  const system = manualSystem();
  const documents: Documents = parts.documents ?? memoryVersionedDocuments();
  const versioned = createVersioned<Account>({ consumer: 'c', documents, documentOf: () => 'a', system, log: silentLog, ...parts });
  return {
    system,
    documents,
    versioned,
    /** Applied to the end of all pauses. */
    deliver: (message = payment('k', 1_000), apply = adding) => settled(system, versioned(apply)(message, context())),
    balance: async () => (await documents.load('a'))?.data.balance,
    events: async () => (await documents.load('a'))?.data.processedEvents,
  };
}

type Fault = 'answer-lost' | 'failed' | 'conflict' | 'none';

/** Documents whose saves go wrong in the order given, the last one for ever. */
function faulty(...faults: Fault[]): Documents & { saves: number } {
  const kept: Documents = memoryVersionedDocuments();
  const documents = {
    saves: 0,
    load: kept.load,
    async save(...args: Parameters<Documents['save']>) {
      documents.saves += 1;
      const fault = faults.length > 1 ? faults.shift() : faults[0];
      if (fault === 'conflict') return 'conflict' as const;
      if (fault === 'failed') throw new ToolkitError('STORE_UNAVAILABLE', 'not saved');
      const saved = await kept.save(...args);
      if (fault === 'answer-lost') throw new ToolkitError('STORE_UNAVAILABLE', 'answer lost');
      return saved;
    },
  };
  return documents;
}

describe('which event is applied', () => {
  test('one from before what the document remembers is a dead letter, without a change', async () => {
    const { deliver, balance } = setUp({ options: { maxEvents: 1 } });
    await deliver(payment('a', Date.UTC(2026, 0, 1)));
    await deliver(payment('b', Date.UTC(2026, 0, 2)));
    const detail =
      'published at 2026-01-01T00:00:00.000Z; of the events up to 2026-01-01T00:00:00.000Z the document no longer knows which were applied';
    expect(await deliver(payment('c', Date.UTC(2026, 0, 1)))).toEqual(deadLetter('tooOld', detail, 'c'));
    expect(await balance()).toBe(20);
  });

  test('of a message that made a hop it is the first publication that counts', async () => {
    const { deliver, events } = setUp();
    await deliver(payment('a', 9_000, { 'ptk-origin-time': '1970-01-01T00:00:05.000Z' }));
    await deliver(payment('b', undefined, { 'ptk-origin-time': '1970-01-01T00:00:06.000Z' }));
    await deliver(payment('c', 7_000, { 'ptk-origin-time': 'yesterday' }));
    await deliver(payment('d', 8_000, { 'ptk-origin-time': '2999-01-01T00:00:00.000Z' }));
    await deliver(payment('e', undefined));
    expect((await events())?.events.map(({ atMs }) => atMs)).toEqual([5_000, 6_000, 7_000, 8_000, 8_000]);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, 0, -1, undefined])('an order of %s is none', async (order) => {
    const { deliver, events } = setUp({ orderOf: () => order });
    await deliver();
    expect((await events())?.events.map(({ atMs }) => atMs)).toEqual([0]);
  });

  test('an order of the user’s own is taken', async () => {
    const { deliver, events } = setUp({ orderOf: () => 7 });
    await deliver();
    expect((await events())?.events.map(({ atMs }) => atMs)).toEqual([7]);
  });

  test('the event is known by the key of the message, and by the one that keyOf makes', async () => {
    const { deliver, balance } = setUp({ keyOf: ({ attributes }) => attributes.payment });
    expect(await deliver(payment('a', 1, { payment: 'p' }))).toEqual(ack('processed'));
    expect(await deliver(payment('b', 1, { payment: 'p' }))).toEqual(ack('duplicate'));
    expect(await deliver(payment('p', 1))).toEqual(ack('duplicate'));
    expect(await balance()).toBe(10);
  });
});

describe('what apply sees and may say', () => {
  test('it sees the data without the list of events, nothing at first, and the key', async () => {
    const { deliver } = setUp();
    const seen: unknown[] = [];
    const apply: Apply<Account> = (_, account, { idempotencyKey }) => {
      seen.push([account, idempotencyKey]);
      return { balance: 1 };
    };
    await deliver(payment('a', 1), apply);
    await deliver(payment('b', 2), apply);
    expect(seen).toEqual([
      [undefined, 'a'],
      [{ balance: 1 }, 'b'],
    ]);
  });

  test.each([nack('early'), deadLetter('refused', 'no'), ack('skipped')])(
    'a verdict ($kind) writes nothing and is passed on',
    async (verdict) => {
      const { deliver, balance } = setUp();
      expect(await deliver(payment('a', 1), () => verdict)).toEqual(verdict);
      expect(await balance()).toBeUndefined();
      expect(await deliver(payment('a', 1))).toEqual(ack('processed'));
    },
  );

  test('a throw has changed nothing, and the next delivery is applied', async () => {
    const { deliver, balance } = setUp();
    const failing: Apply<Account> = () => Promise.reject(new Error('boom'));
    expect(await deliver(payment('a', 1), failing)).toEqual(nack('failed'));
    expect(await deliver(payment('a', 1))).toEqual(ack('processed'));
    expect(await balance()).toBe(10);
  });

  test.each([undefined, null, 7, 'x'])('%s is no data of a document', async (made) => {
    const { deliver, balance } = setUp();
    expect(await deliver(payment('a', 1), () => made as never)).toEqual(nack('failed'));
    expect(await balance()).toBeUndefined();
  });
});

describe('a store that loses and contends', () => {
  test.each<[string, Fault[], number]>([
    ['the answer of a save', ['answer-lost', 'none'], 1],
    ['a save', ['failed', 'none'], 2],
    ['two saves', ['failed', 'failed', 'none'], 3],
    ['a race', ['conflict', 'none'], 2],
    ['19 races', [...Array(19).fill('conflict'), 'none'], 20],
  ])('applied once though it loses %s', async (_, faults, saves) => {
    const documents = faulty(...faults);
    const { deliver, balance } = setUp({ documents });
    expect(await deliver()).toEqual(ack(faults[0] === 'answer-lost' ? 'duplicate' : 'processed'));
    expect([documents.saves, await balance()]).toEqual([saves, 10]);
    expect(await deliver()).toEqual(ack('duplicate'));
  });

  test('given back when the last try too comes second', async () => {
    const documents = faulty('conflict');
    const { deliver } = setUp({ documents });
    expect(await deliver()).toEqual(nack('inProgress', 1_000));
    expect(documents.saves).toBe(20);
  });

  test('given back when the store stays down', async () => {
    const documents = faulty('failed');
    const { deliver, system } = setUp({ documents, options: { storeTimeoutMs: 1_000 } });
    const startMs = system.clock.monotonicMs();
    expect(await deliver()).toEqual(nack('storeUnavailable'));
    expect(system.clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(1_000);
    expect(system.clock.monotonicMs() - startMs).toBeLessThan(1_300);
  });

  test('given back when the store never answers', async () => {
    const silent = { load: () => new Promise<never>(() => {}), save: () => new Promise<never>(() => {}) };
    const { deliver } = setUp({ documents: silent, options: { storeTimeoutMs: 1_000 } });
    expect(await deliver()).toEqual(nack('storeUnavailable'));
  });

  test('what the store refuses for good is a dead letter', async () => {
    const refusing: Documents = { load: async () => undefined, save: () => Promise.reject(new ToolkitError('REFUSED', 'too large')) };
    expect(await setUp({ documents: refusing }).deliver()).toEqual(deadLetter('refused', 'too large'));
  });

  test.each([{ processedEvents: 'x' }, { processedEvents: null }, { processedEvents: { events: [{}], watermarkMs: 0 } }])(
    'a list that this version does not read is left alone: %j',
    async (fields) => {
      const { documents, deliver, balance } = setUp();
      await documents.save('a', { balance: 5, ...fields } as never, 'absent');
      expect(await deliver()).toEqual(nack('storeUnavailable'));
      expect(await balance()).toBe(5);
    },
  );
});

describe('deliveries of one process', () => {
  test('for one document run one after the other, after a failed one too, and make no conflict', async () => {
    const documents = faulty('none');
    const { deliver, balance } = setUp({ documents });
    const failing: Apply<Account> = () => Promise.reject(new Error('boom'));
    const verdicts = await Promise.all([
      deliver(payment('x', 1), failing),
      ...Array.from({ length: 5 }, (_, i) => deliver(payment(`${i}`, 1))),
    ]);
    expect(verdicts).toEqual([nack('failed'), ...Array(5).fill(ack('processed'))]);
    expect([documents.saves, await balance()]).toEqual([5, 50]);
  });

  test('for another document wait for nobody', async () => {
    const { versioned } = setUp({ documentOf: ({ attributes }) => attributes['ptk-key'] ?? '' });
    const hold = gate();
    const first = versioned(async () => {
      await hold.opened;
      return { balance: 1 };
    })(payment('a', 1), context());
    expect(await versioned(adding)(payment('b', 1), context())).toEqual(ack('processed'));
    hold.open();
    expect(await first).toEqual(ack('processed'));
  });
});

test.each(['', '\ud800', undefined, 7])('a document id of %j is a dead letter', async (id) => {
  expect(await setUp({ documentOf: () => id as string }).deliver()).toMatchObject({ kind: 'deadLetter', reason: 'malformed' });
});

test.each([0, 10_001])('room for %d events is refused at start', (maxEvents) => {
  const message = `maxEvents is ${maxEvents}; it must be a whole number from 1 to 10000`;
  expect(() => setUp({ options: { maxEvents } })).toThrow(expect.objectContaining({ code: 'INVALID_SETTINGS', message }));
});
