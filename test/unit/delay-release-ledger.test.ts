import { describe, expect, test } from 'vitest';
import { createRelease } from '../../src/shared/delay/release.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { OutgoingMessage, Task } from '../../src/shared/index.ts';
import { memoryRecordStore } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';
import { faultyStore, type StoreFault } from '../support/faulty-store.ts';
import { gate, settled } from '../support/manual-system.ts';

const later = new ToolkitError('SERVICE_UNAVAILABLE', 'later');
const draft = { data: Buffer.from('x'), key: 'k' };
const number = { 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' };
const day = 86_400_000;

/** Delayed for 5 s under the id `order 7`. */
async function setUp(given: { attributes?: Record<string, string>; data?: Buffer } = {}, release: Parameters<typeof setUpDelay>[1] = {}) {
  const world = setUpDelay({}, release);
  await world.delays.schedule({ ...draft, ...given }, { id: 'order 7', inMs: 5_000 });
  const only = world.task(0) ?? expect.fail();
  const stateOf = async () => (await world.delays.get('order 7'))?.state;
  return { ...world, only, stateOf };
}

/** What was published where, and in place of which number. */
const sent = (topics: [string, OutgoingMessage][]) =>
  topics.map(([topic, { attributes }]) => [topic, attributes['ptk-key'], attributes['ptk-tombstone']]);

describe('a task of the ledger', () => {
  test('publishes what is under its id, and a second dispatch of it nothing', async () => {
    const { topics, dispatched, only, delays } = await setUp();
    expect(await dispatched(only)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(await dispatched(only, 2)).toEqual({ kind: 'ended' });
    expect(topics).toEqual([['final', { data: Buffer.from('x'), attributes: { 'ptk-key': 'k', 'ptk-delay-count': '1' } }]]);
    expect(await delays.get('order 7')).toMatchObject({ state: 'fired', messageId: 'out-0' });
  });

  test('is busy until the lease of another dispatch is over, and then publishes a copy under the same key', async () => {
    const opened = gate();
    const keys: (string | undefined)[] = [];
    const publisher = {
      publish: async (_topic: string, [message]: readonly OutgoingMessage[]) => {
        keys.push(message?.attributes['ptk-key']);
        const id = `m${keys.length}`;
        if (keys.length === 1) await opened.opened;
        return [id];
      },
    };
    const { system, dispatched, only, delays } = await setUp({}, { publisher });
    const first = dispatched(only);
    await system.time.advance(59_999);
    expect(await dispatched(only, 2)).toEqual({ kind: 'busy' });
    await system.time.advance(1);
    expect(await dispatched(only, 3)).toEqual({ kind: 'published', messageId: 'm2' });
    opened.open();
    expect(await first).toEqual({ kind: 'ended' });
    expect(keys).toEqual(['k', 'k']);
    expect(await delays.get('order 7')).toMatchObject({ state: 'fired', messageId: 'm2' });
  });

  test('that could not publish may at once, is never busy, and can be cancelled no more', async () => {
    const { topics, failure, dispatched, only, delays, stateOf } = await setUp();
    failure.publish = later;
    for (const attempt of [1, 2]) await expect(dispatched(only, attempt)).rejects.toThrow(later);
    expect(await stateOf()).toBe('releasing');
    expect(await delays.cancel('order 7')).toEqual({ outcome: 'tooLate' });
    expect(await delays.reschedule('order 7', 1_800_000_000_000)).toEqual({ outcome: 'tooLate' });
    failure.publish = undefined;
    expect(await dispatched(only, 3)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect([topics.length, await stateOf()]).toEqual([1, 'fired']);
  });

  test('whose publish was not answered publishes a copy under the same key', async () => {
    const { topics, failure, dispatched, only } = await setUp();
    failure.answer = later;
    await expect(dispatched(only)).rejects.toThrow(later);
    failure.answer = undefined;
    expect(await dispatched(only, 2)).toEqual({ kind: 'published', messageId: 'out-1' });
    expect(topics[1]).toEqual(topics[0]);
  });

  test('is one dead letter where its entry was deleted, however often it is dispatched', async () => {
    const { only } = await setUp();
    const { dispatched, deadLetters } = setUpDelay();
    for (let dispatch = 0; dispatch < 3; dispatch++)
      expect(await dispatched(only)).toEqual({ kind: 'deadLettered', reason: 'ledgerMissing' });
    expect(deadLetters.kept).toHaveLength(1);
  });

  test('is never out of attempts: a repair would make it again', async () => {
    const { failure, deadLetters, dispatched, only } = await setUp({}, { options: { maxAttempts: 3 } });
    failure.publish = later;
    await expect(dispatched(only, 3)).rejects.toThrow(later);
    expect(deadLetters.kept).toEqual([]);
  });

  test.each<[string, StoreFault[]]>([
    ['the answer of its claim is lost', ['answer-lost']],
    ['its claim fails at first', ['failed']],
    ['its client repeats its claim by itself', ['own-conflict']],
    ['the answer of its end is lost', ['own-conflict', 'answer-lost']],
    ['its end fails at first', ['own-conflict', 'failed']],
  ])('publishes once where %s', async (_, faults) => {
    const { topics, parts, system, deadLetters, only, stateOf } = await setUp();
    const ledger = { ...parts.ledger, ...faultyStore(parts.ledger, [...faults]) };
    const releasing = createRelease({ ...parts, ledger, deadLetters, store: memoryRecordStore<never>(system.clock) });
    const dispatch = () => settled(system, releasing({ id: only.id, queue: 'q', body: Buffer.from(only.body).toString(), attempt: 1 }));
    expect(await dispatch()).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(await dispatch()).toEqual({ kind: 'ended' });
    expect([topics.length, await stateOf()]).toEqual([1, 'fired']);
  });
});

describe('a task that finds another entry', () => {
  /** The task of one ledger, dispatched where there is another one. */
  const dispatchedElsewhere = async (task: Task, other: ReturnType<typeof setUpDelay>) => {
    const found = await other.dispatched(task);
    return { found, sent: sent(other.topics), letters: other.deadLetters.kept };
  };

  test.each(['none', 'one that was made anew'])('namely %s ends as a dead letter, and its number goes to its stream', async (which) => {
    const { only } = await setUp({ attributes: number });
    const other = setUpDelay();
    // Ids count in each world alone, and an incarnation is one of them.
    if (which !== 'none') for (const id of ['order 6', 'order 7']) await other.delays.schedule({ ...draft, key: 'l' }, { id, inMs: 5_000 });
    const { found, sent, letters } = await dispatchedElsewhere(only, other);
    expect(found).toEqual({ kind: 'deadLettered', reason: 'ledgerMissing' });
    expect(sent).toEqual([['final', 'k', 'ledgerMissing']]);
    expect(letters).toMatchObject([
      { message: { data: Buffer.from('x'), attributes: { 'ptk-key': 'k', ...number } }, reason: 'ledgerMissing' },
    ]);
    if (which !== 'none') expect(await other.delays.get('order 7')).toMatchObject({ state: 'pending', key: 'l' });
  });

  test('of a newer generation makes the task that this one lacks', async () => {
    const { topics, tasks, failure, delays, release, only, dispatched, task } = await setUp();
    failure.schedule = later;
    await expect(delays.schedule({ ...draft, key: 'l' }, { id: 'order 7', inMs: 9_000 })).rejects.toThrow(later);
    failure.schedule = undefined;
    expect([tasks.size, await delays.get('order 7')]).toMatchObject([1, { generation: 2, key: 'l' }]);
    expect(await release(only)).toEqual({ kind: 'ended' });
    expect(await dispatched(only)).toEqual({ kind: 'ended' });
    expect([tasks.size, topics.length]).toEqual([1, 0]);
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(sent(topics)).toEqual([['final', 'l', undefined]]);
  });

  test('that was cancelled gives back the number that is still owed', async () => {
    const { topics, failure, delays, dispatched, only } = await setUp({ attributes: number });
    failure.publish = later;
    await expect(delays.cancel('order 7')).rejects.toThrow(later);
    failure.publish = undefined;
    expect(await dispatched(only)).toEqual({ kind: 'ended' });
    expect(sent(topics)).toEqual([['final', 'k', 'cancelled']]);
  });
});

describe('what is under an id and can never be published', () => {
  const refused = new ToolkitError('REFUSED', 'no');

  test('is one dead letter, and its entry has ended', async () => {
    const { topics, failure, deadLetters, dispatched, only, stateOf, tasks } = await setUp();
    failure.publish = refused;
    expect(await dispatched(only)).toEqual({ kind: 'deadLettered', reason: 'refused' });
    failure.publish = undefined;
    expect(await dispatched(only, 2)).toEqual({ kind: 'ended' });
    expect([topics.length, deadLetters.kept.length, await stateOf(), tasks.size]).toEqual([0, 1, 'fired', 1]);
  });

  test('is one dead letter also where its topic refuses the tombstone of its number', async () => {
    const { failure, deadLetters, dispatched, only, stateOf } = await setUp({ attributes: number });
    failure.publish = refused;
    expect(await dispatched(only)).toEqual({ kind: 'deadLettered', reason: 'refused' });
    expect([deadLetters.kept.length, await stateOf()]).toEqual([1, 'fired']);
  });

  test('is one dead letter, with its number left, where its payload is gone', async () => {
    const { topics, payloads, bodies, deadLetters, dispatched, only, stateOf } = await setUp({
      attributes: number,
      data: Buffer.alloc(100_000),
    });
    await payloads.remove(bodies()[0].payload);
    expect(await dispatched(only)).toEqual({ kind: 'deadLettered', reason: 'payloadMissing' });
    expect(await dispatched(only, 2)).toEqual({ kind: 'ended' });
    expect([sent(topics), deadLetters.kept.length, await stateOf()]).toEqual([[['final', 'k', 'deadLetter']], 1, 'fired']);
  });
});

describe('under an id', () => {
  test('10 MB come back byte for byte, and are kept no longer than that', async () => {
    const data = Buffer.alloc(9_999_875, 'grüße');
    const { topics, payloads, bodies, dispatched, only } = await setUp({ data });
    const { payload } = bodies()[0];
    expect(await dispatched(only)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(Buffer.compare(Buffer.from(topics[0]?.[1].data ?? ''), data)).toBe(0);
    expect(await payloads.get(payload)).toBeUndefined();
  });

  test('400 days are sixteen tasks, and a new due time ends the older ones', async () => {
    const { topics, delays, task, release } = setUpDelay();
    await delays.schedule(draft, { id: 'order 7', inMs: 400 * day });
    for (let hop = 2; hop <= 16; hop++) expect(await release(task(0))).toEqual({ kind: 'hop', hop });
    const last = task(0);
    await delays.reschedule('order 7', Date.UTC(2026, 0, 2));
    expect(await release(last)).toEqual({ kind: 'ended' });
    expect(topics).toEqual([]);
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    expect((await delays.get('order 7'))?.state).toBe('fired');
  });
});
