import { EventEmitter } from 'node:events';
import type { Message as PubsubMessage, Subscription } from '@google-cloud/pubsub';
import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/shared/message.ts';
import type { VerdictHandler } from '../../src/shared/ports.ts';
import { startPull } from '../../src/shared/transports/pull.ts';
import { ack, deadLetter, nack } from '../../src/shared/verdict.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';
import { gate, manualSystem } from '../support/manual-system.ts';

/** What `startPull` needs of a subscription, and what became of the deliveries it emits. */
class FakeSubscription extends EventEmitter {
  readonly name = 'projects/p/subscriptions/s';
  readonly done: string[] = [];
  async close(): Promise<void> {
    this.done.push('closed');
  }
  deliver(id: string, change: object = {}): void {
    const delivery = {
      id,
      data: Buffer.from('x'),
      attributes: { a: '1' },
      publishTime: new Date(1_767_225_600_500),
      ack: () => this.done.push(`ack ${id}`),
      nack: () => this.done.push(`nack ${id}`),
      ...change,
    };
    this.emit('message', delivery as unknown as PubsubMessage);
  }
}

function setUp(handle: VerdictHandler, deadLetters = keptDeadLetters()) {
  const fake = new FakeSubscription();
  const system = manualSystem();
  const logged: object[] = [];
  const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
  const pull = startPull({ subscription: fake as unknown as Subscription, handle, deadLetters, system, log });
  return { fake, system, deadLetters, logged, pull };
}

describe('a delivery is settled once', () => {
  test.each<[string, VerdictHandler]>([
    ['ack', async () => ack('processed')],
    ['ack', async () => ack('duplicate')],
    ['nack', async () => nack('early')],
    ['nack', () => Promise.reject(new Error('boom'))],
    [
      'nack',
      () => {
        throw new Error('boom at once');
      },
    ],
    ['ack', async () => deadLetter('malformed', 'why')],
  ])('by %s where the handler is %s', async (settled, handle) => {
    const { fake, pull } = setUp(handle);
    fake.deliver('1');
    await pull.close();
    expect(fake.done).toEqual([`${settled} 1`, 'closed']);
  });

  test('and a dead letter is stored before', async () => {
    const { fake, pull, deadLetters } = setUp(async () => deadLetter('malformed', 'why'));
    fake.deliver('1');
    await pull.close();
    expect(deadLetters.kept).toMatchObject([{ message: { messageId: '1' }, reason: 'malformed', detail: 'why' }]);
  });

  test('by nack where its dead letter cannot be stored', async () => {
    const failing = { ...keptDeadLetters(), publish: () => Promise.reject(new Error('no topic')) };
    const { fake, pull, logged } = setUp(async () => deadLetter('malformed', 'why'), failing);
    fake.deliver('1');
    await pull.close();
    expect(fake.done).toEqual(['nack 1', 'closed']);
    expect(logged).toEqual([{ messageId: '1', reason: 'no topic' }]);
  });
});

describe('a delivery that is in progress elsewhere', () => {
  test.each([
    [0, 0],
    [400, 400],
    [1_000, 1_000],
    [60_000, 1_000],
  ])('and is to come again in %d ms is given back after %d ms', async (retryAfterMs, heldMs) => {
    const { fake, system, pull } = setUp(async () => nack('inProgress', retryAfterMs));
    fake.deliver('1');
    await system.time.advance(Math.max(heldMs - 1, 0));
    expect(fake.done).toEqual(heldMs === 0 ? ['nack 1'] : []);
    await system.time.advance(1);
    expect(fake.done).toEqual(['nack 1']);
    await pull.close();
  });
});

test('the handler sees the message that the client received', async () => {
  const seen: Message[] = [];
  const { fake, pull } = setUp(async (message) => {
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

describe('close', () => {
  test('waits for what is running, and takes no more', async () => {
    const hold = gate();
    const signals: AbortSignal[] = [];
    const { fake, pull } = setUp(async (_, { signal }) => {
      signals.push(signal);
      await hold.opened;
      return ack('processed');
    });
    fake.deliver('1');
    const closed = pull.close();
    fake.deliver('2');
    expect(fake.done).toEqual([]);
    expect(fake.listenerCount('message')).toBe(1);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    hold.open();
    await closed;
    expect(fake.done).toEqual(['ack 1', 'closed']);
  });
});

test('an error of the subscription is logged and not thrown', async () => {
  const { fake, pull, logged } = setUp(async () => ack('processed'));
  fake.emit('error', new Error('PERMISSION_DENIED'));
  expect(logged).toEqual([{ subscription: 'projects/p/subscriptions/s', reason: 'PERMISSION_DENIED' }]);
  await pull.close();
});
