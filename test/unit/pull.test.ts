import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/shared/message.ts';
import type { VerdictHandler } from '../../src/shared/ports.ts';
import { ack, deadLetter, nack } from '../../src/shared/verdict.ts';
import { keptDeadLetters } from '../../src/testing/doubles.ts';
import { fakePull } from '../support/fake-subscription.ts';

const closing = ['closeOptions', 'closed'];
const throwing = (thrown: unknown): VerdictHandler => {
  return () => {
    throw thrown;
  };
};

describe('a delivery is settled once', () => {
  test.each<[string, string, VerdictHandler]>([
    ['ack', 'has processed', async () => ack('processed')],
    ['ack', 'finds a duplicate', async () => ack('duplicate')],
    ['nack', 'says nack', async () => nack('early')],
    ['nack', 'rejects', () => Promise.reject(new Error('boom'))],
    ['nack', 'rejects with no error', () => Promise.reject('boom')],
    ['nack', 'rejects with nothing', () => Promise.reject(undefined)],
    ['nack', 'throws at once', throwing(new Error('boom'))],
    ['nack', 'throws no error', throwing(null)],
    ['nack', 'answers nothing', (async () => undefined) as unknown as VerdictHandler],
    ['ack', 'says dead letter', async () => deadLetter('malformed', 'why')],
  ])('by %s where the handler %s', async (settled, _, handle) => {
    const { fake, system, pull } = fakePull(handle);
    fake.deliver('1');
    await system.time.settled();
    expect(fake.done).toEqual([`${settled} 1`]);
    await pull.close();
    expect(fake.done).toEqual([`${settled} 1`, ...closing]);
  });

  test('and a dead letter is stored before, and told of with its detail', async () => {
    const deadLetters = keptDeadLetters();
    const { fake, pull, logged } = fakePull(async () => deadLetter('malformed', 'why'), { deadLetters });
    fake.deliver('1');
    await pull.close();
    expect(deadLetters.kept).toMatchObject([{ message: { messageId: '1' }, reason: 'malformed', detail: 'why' }]);
    expect(logged).toEqual(['warn: dead letter {"messageId":"1","reason":"malformed","detail":"why"}']);
  });

  test('by nack where its dead letter cannot be stored', async () => {
    const deadLetters = { publish: () => Promise.reject(new Error('no topic')) };
    const { fake, system, logged } = fakePull(async () => deadLetter('malformed', 'why'), { deadLetters });
    fake.deliver('1');
    await system.time.settled();
    expect(fake.done).toEqual(['nack 1']);
    expect(logged).toEqual(['error: delivery failed {"messageId":"1","reason":"no topic"}']);
  });

  test('by nack at the end of closing where the handler never ends', async () => {
    const { fake, system, pull, logged } = fakePull(() => Promise.race([]));
    fake.deliver('1');
    const closed = pull.close({ timeoutMs: 500 });
    await system.time.advance(1_499);
    expect(fake.done).toEqual(closing);
    await system.time.advance(1);
    await closed;
    expect(fake.done).toEqual([...closing, 'nack 1']);
    expect(logged).toEqual(['error: handler left: it did not stop {"messageId":"1"}']);
  });
});

describe('an ack that Pub/Sub refuses', () => {
  test.each([
    ['INVALID : late', () => Promise.reject(new Error('INVALID : late'))],
    ['the client answered INVALID', async () => 'INVALID'],
  ])('is logged and counted: %s', async (reason, ackWithResponse) => {
    const { fake, system, logged, counted } = fakePull(async () => ack('processed'));
    fake.deliver('1', { ackWithResponse });
    await system.time.settled();
    expect(logged).toEqual([`error: ack refused; the message comes again {"messageId":"1","reason":"${reason}"}`]);
    expect(counted).toEqual(['ptk.pull.ack_failed']);
    expect(fake.done).toEqual([]);
  });
});

test('the handler sees the message that the client received', async () => {
  const seen: Message[] = [];
  const { fake, pull } = fakePull(async (message) => {
    seen.push(message);
    return ack('processed');
  });
  fake.deliver('1', { orderingKey: 'o', deliveryAttempt: 2 });
  fake.deliver('2', { publishTime: new Date(0), deliveryAttempt: 0 });
  await pull.close();
  const both = { data: Buffer.from('x'), attributes: { a: '1' }, subscription: 'projects/p/subscriptions/s' };
  expect(seen).toEqual([
    { ...both, messageId: '1', orderingKey: 'o', publishTimeMs: 1_767_225_600_500, deliveryAttempt: 2 },
    { ...both, messageId: '2', orderingKey: '', publishTimeMs: undefined, deliveryAttempt: undefined },
  ]);
});

test('an error of the subscription is logged and not thrown', () => {
  const { fake, logged } = fakePull(async () => ack('processed'));
  fake.emit('error', new Error('PERMISSION_DENIED'));
  expect(logged).toEqual([
    'error: subscription closed by an error {"subscription":"projects/p/subscriptions/s","reason":"PERMISSION_DENIED"}',
  ]);
});

test.each([
  [{ concurrency: 0 }, 'concurrency is 0; it must be a whole number from 1 to 10000'],
  [{ concurrency: 10_001 }, 'concurrency is 10001; it must be a whole number from 1 to 10000'],
  [{ maxExtensionMs: 999 }, 'maxExtensionMs is 999; it must be a whole number from 1000 to 86400000'],
  [{ closeTimeoutMs: -1 }, 'closeTimeoutMs is -1; it must be a whole number from 0 to 3600000'],
])('the options %o are refused at start', (options, message) => {
  expect(() => fakePull(async () => ack('processed'), { options })).toThrow(message);
});
