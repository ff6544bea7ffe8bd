import { describe, expect, test } from 'vitest';
import type { DelayParts } from '../../src/shared/delay/delay.ts';
import { fullTopic, passOf, targetOf } from '../../src/shared/delay/targets.ts';
import type { OutgoingMessage } from '../../src/shared/index.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';

const context = { signal: new AbortController().signal };
const malformed = (text: string) => expect.objectContaining({ code: 'MALFORMED_MESSAGE', message: text });

describe('the target of a message', () => {
  const targets = { finalTopic: 'final', targets: ['audit', 'projects/p/topics/billing'] };
  test.each([
    [undefined, 'final'],
    ['final', 'final'],
    ['audit', 'audit'],
    ['billing', 'projects/p/topics/billing'],
    ['projects/p/topics/billing', 'projects/p/topics/billing'],
  ])('%s is %s', (named, topic) => {
    expect(targetOf({ attributes: named === undefined ? {} : { 'ptk-target': named } }, targets)).toBe(topic);
  });

  test.each(['', 'other', 'Audit', 'audit ', 'topics/billing', 'projects/q/topics/billing', 'projects/p/topics/audit'])(
    '%j is refused',
    (named) => {
      expect(() => targetOf({ attributes: { 'ptk-target': named } }, targets)).toThrow(
        malformed(`ptk-target is ${JSON.stringify(named)}; it must be one of final, audit, projects/p/topics/billing`),
      );
    },
  );

  test('is the final topic alone where no other one is allowed', () => {
    expect(() => targetOf({ attributes: { 'ptk-target': 'audit' } }, { finalTopic: 'final' })).toThrow('it must be one of final');
  });

  test.each([
    ['final', 'projects/p/topics/final'],
    ['projects/q/topics/final', 'projects/q/topics/final'],
  ])('%s is in full %s', (topic, full) => {
    expect(fullTopic(topic, 'projects/p/subscriptions/s')).toBe(full);
  });
});

describe('a message with a target', () => {
  const setUp = () => setUpDelay({ options: { holdMs: 250 }, targets: ['audit'] });

  test('goes there at once, after a hold and by a task, and the target does not travel on', async () => {
    const { topics, task, delay, release, system } = setUp();
    await delay(testMessage({ messageId: '1', attributes: { 'ptk-target': 'audit' } }), context);
    const held = delay(testMessage({ messageId: '2', attributes: { 'ptk-target': 'audit', 'ptk-delay-ms': '250' } }), context);
    await system.time.advance(250);
    await held;
    await delay(testMessage({ messageId: '3', attributes: { 'ptk-target': 'audit', 'ptk-delay-ms': '251' } }), context);
    await release(task(0));
    expect(topics.map(([topic, { attributes }]) => [topic, attributes['ptk-origin-id'], attributes['ptk-target']])).toEqual([
      ['audit', '1', undefined],
      ['audit', '2', undefined],
      ['audit', '3', undefined],
    ]);
  });

  test('that is not allowed is dead-lettered, and published nowhere', async () => {
    const { topics, tasks, delay } = setUp();
    const detail = 'ptk-target is "other"; it must be one of final, audit';
    const verdict = { kind: 'deadLetter', reason: 'malformed', detail };
    expect(await delay(testMessage({ attributes: { 'ptk-target': 'other', 'ptk-delay-ms': '5000' } }), context)).toEqual(verdict);
    expect([topics.length, tasks.size]).toEqual([0, 0]);
  });

  test('that is not allowed leaves the number that it had to its stream, once', async () => {
    const { topics, delay } = setUp();
    const number = { 'ptk-key': 'k', 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' };
    const message = testMessage({ attributes: { ...number, 'ptk-target': 'other', 'ptk-delay-ms': '5000', own: 'a' }, data: 'x' });
    const verdicts = await Promise.all([delay(message, context), delay(message, context)]);
    expect(verdicts.map(({ reason }) => reason)).toEqual(['malformed', 'malformed']);
    const origin = { 'ptk-origin-id': '1', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' };
    expect(topics).toEqual([['final', { data: new Uint8Array(), attributes: { ...number, ...origin, 'ptk-tombstone': 'malformed' } }]]);
  });
});

test('a tombstone that ends here leaves none of its own, or two topics would pass them on for ever', async () => {
  const { topics, delay } = setUpDelay();
  const attributes = { 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5', 'ptk-tombstone': 'cancelled', 'ptk-target': 'other' };
  expect(await delay(testMessage({ attributes }), context)).toMatchObject({ kind: 'deadLetter', reason: 'malformed' });
  expect(topics).toEqual([]);
});

/** Topics that have delay functions, each with its release: whatever is published to one of them is delivered, and every task runs. */
async function goingRound(
  functions: Record<string, Partial<DelayParts> & { finalTopic: string }>,
  attributes: Record<string, string> = {},
) {
  const worlds = new Map(Object.entries(functions).map(([topic, given]) => [topic, setUpDelay(given, { finalTopic: given.finalTopic })]));
  const verdicts: string[] = [];
  const published: [topic: string, message: OutgoingMessage][] = [['a', { attributes, data: Buffer.from('x') }]];
  for (const [topic, message] of published) {
    const world = worlds.get(topic);
    if (!world) continue;
    const subscription = `projects/test/subscriptions/${topic}-delay`;
    const { reason } = await world.delay(testMessage({ ...message, messageId: String(published.length), subscription }), context);
    verdicts.push(`${topic}: ${reason}`);
    while (world.task(0)) await world.release(world.task(0));
    published.push(...world.topics.splice(0));
    if (published.length > 100) throw new Error('it goes round for ever');
  }
  return { verdicts, published: published.slice(1).map(([topic]) => topic), attributes: published.at(-1)?.[1].attributes };
}

const topicOf = async (subscription: string) => `projects/test/topics/${/([^/]*)-delay$/.exec(subscription)?.[1]}`;
const times = <T>(count: number, ...items: T[]): T[] => Array.from({ length: count }, () => items).flat();

describe('a topic that is its own target', () => {
  test('has its message delayed once, and then it stays there', async () => {
    expect(await goingRound({ a: { finalTopic: 'a', topicOf } }, { 'ptk-delay-ms': '5000' })).toMatchObject({
      verdicts: ['a: scheduled', 'a: processed'],
      published: ['a'],
      attributes: { 'ptk-delay-count': '1' },
    });
  });

  test('keeps a message without a due time where it is', async () => {
    expect(await goingRound({ a: { finalTopic: 'a', topicOf } })).toMatchObject({
      verdicts: ['a: processed'],
      published: [],
    });
  });

  test('delays by default once', async () => {
    const found = await goingRound({ a: { finalTopic: 'a', topicOf, options: { defaultMs: 5_000 } } });
    expect(found).toMatchObject({ verdicts: ['a: scheduled', 'a: processed'], published: ['a'] });
  });

  test('ends after 16 passes where nobody can tell that it is', async () => {
    const found = await goingRound({ a: { finalTopic: 'a' } }, { 'ptk-delay-ms': '5000' });
    expect(found.verdicts).toEqual(['a: scheduled', ...times(15, 'a: processed'), 'a: loop']);
    expect(found.attributes).toMatchObject({ 'ptk-delay-count': '1', 'ptk-delay-passes': '16' });
  });

  test('delays by default 16 times at most where nobody can tell that it is', async () => {
    const found = await goingRound({ a: { finalTopic: 'a', options: { defaultMs: 5_000 } } });
    expect(found.verdicts).toEqual([...times(16, 'a: scheduled'), ...times(15, 'a: processed'), 'a: loop']);
  });
});

describe('two topics that are each other’s target', () => {
  const a = { finalTopic: 'b', topicOf };
  const b = { finalTopic: 'a', topicOf };

  test('end a message without a due time after 16 passes', async () => {
    const found = await goingRound({ a, b });
    expect(found.verdicts).toEqual([...times(8, 'a: processed', 'b: processed'), 'a: loop']);
    expect(found.published).toEqual(times(8, 'b', 'a'));
  });

  test('leave no tombstone of a message that they end, which would go round as well', async () => {
    const found = await goingRound({ a, b }, { 'ptk-key': 'k', 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' });
    expect(found.attributes).toMatchObject({ 'ptk-seq': '5' });
    expect(found.attributes).not.toHaveProperty('ptk-tombstone');
  });

  test('delay a message once, which is a pass too, and end it after 15 more', async () => {
    const found = await goingRound({ a, b }, { 'ptk-delay-ms': '5000' });
    expect(found.verdicts).toEqual(['a: scheduled', ...times(7, 'b: processed', 'a: processed'), 'b: processed', 'a: loop']);
  });

  test('delay by default 16 times together', async () => {
    const options = { defaultMs: 5_000 };
    const found = await goingRound({ a: { ...a, options }, b: { ...b, options } });
    expect(found.verdicts).toEqual([
      ...times(8, 'a: scheduled', 'b: scheduled'),
      ...times(7, 'a: processed', 'b: processed'),
      'a: processed',
      'b: loop',
    ]);
  });
});

describe('how often a message passed', () => {
  test.each([
    [undefined, 1],
    ['0', 1],
    ['1', 2],
    ['15', 16],
    ['16', undefined],
    ['999999999', undefined],
  ])('after %s comes %s', (passes, pass) => {
    expect(passOf({ attributes: passes === undefined ? {} : { 'ptk-delay-passes': passes } })).toBe(pass);
  });

  test.each(['', '-5', '1.5', '1e3', 'x', 'NaN', '-Infinity', '1000000000'])('%j is no count', (passes) => {
    expect(() => passOf({ attributes: { 'ptk-delay-passes': passes } })).toThrow(malformed('ptk-delay-passes is no whole number from 0'));
  });
});
