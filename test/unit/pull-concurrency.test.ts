import { describe, expect, test } from 'vitest';
import { ack, nack, type Verdict } from '../../src/shared/verdict.ts';
import { fakePull } from '../support/fake-subscription.ts';
import { gate } from '../support/manual-system.ts';

const ids = (count: number) => Array.from({ length: count }, (_, at) => String(at + 1));

describe('concurrency', () => {
  test('of 10 deliveries that the client emits at once, 2 run at most, in order, and each is settled once', async () => {
    let running = 0;
    let most = 0;
    const started: string[] = [];
    const { fake, system } = fakePull(
      async ({ messageId }) => {
        started.push(messageId);
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => void system.clock.after(100, resolve));
        running -= 1;
        return messageId === '3' ? nack('failed') : ack('processed');
      },
      { options: { concurrency: 2 } },
    );
    for (const id of ids(10)) fake.deliver(id);
    await system.time.settled();
    expect([started, fake.done]).toEqual([['1', '2'], []]);
    await system.time.advance(500);
    expect(most).toBe(2);
    expect(started).toEqual(ids(10));
    expect(fake.done.toSorted()).toEqual([...ids(10).map((id) => (id === '3' ? 'nack 3' : `ack ${id}`))].toSorted());
  });

  test('a place is free again however its handler ends', async () => {
    const ends: (() => Verdict)[] = [
      () => nack('failed'),
      () => nack('inProgress', 60_000),
      () => {
        throw new Error('boom');
      },
      () => ack('processed'),
    ];
    const { fake, system } = fakePull(async ({ messageId }) => ends[Number(messageId) - 1]?.() ?? ack('processed'), {
      options: { concurrency: 1 },
    });
    for (const id of ids(4)) fake.deliver(id);
    await system.time.settled();
    expect(fake.done).toEqual(['nack 1', 'nack 3', 'ack 4']);
  });

  test('is 100 where nothing else is said', async () => {
    let running = 0;
    const { fake } = fakePull(() => {
      running += 1;
      return Promise.race([]);
    });
    for (const id of ids(101)) fake.deliver(id);
    expect(running).toBe(100);
  });
});

describe('a delivery that is in progress elsewhere', () => {
  test.each([
    [0, 0],
    [400, 300],
    [1_000, 750],
    [60_000, 750],
  ])('and is to come again in %d ms is given back after %d ms, where the dice fall in the middle', async (retryAfterMs, heldMs) => {
    const { fake, system } = fakePull(async () => nack('inProgress', retryAfterMs));
    fake.deliver('1');
    await system.time.advance(Math.max(heldMs - 1, 0));
    expect(fake.done).toEqual(heldMs === 0 ? ['nack 1'] : []);
    await system.time.advance(1);
    expect(fake.done).toEqual(['nack 1']);
  });

  test('comes less than 5 times a second, and lets another one through', async () => {
    let busyTimes = 0;
    const { fake, system } = fakePull(
      async ({ messageId }) => {
        if (messageId !== 'busy') return ack('processed');
        busyTimes += 1;
        return nack('inProgress', 60_000);
      },
      { options: { concurrency: 1 } },
    );
    // Without a retry policy Pub/Sub delivers a nacked message again at once.
    fake.on('nack', (id: string) => fake.deliver(id));
    fake.deliver('busy');
    fake.deliver('other');
    await system.time.settled();
    expect(fake.done).toEqual(['ack other']);
    await system.time.advance(10_000);
    expect(busyTimes).toBeGreaterThanOrEqual(10);
    expect(busyTimes).toBeLessThan(50);
  });
});

test('what waits is run even if what ran before has failed to be settled', async () => {
  const hold = gate();
  const { fake, system, counted } = fakePull(
    async ({ messageId }) => {
      if (messageId === '1') await hold.opened;
      return ack('processed');
    },
    { options: { concurrency: 1 } },
  );
  fake.deliver('1', { ackWithResponse: () => Promise.reject(new Error('INVALID')) });
  fake.deliver('2');
  hold.open();
  await system.time.settled();
  expect(fake.done).toEqual(['ack 2']);
  expect(counted).toEqual(['ptk.pull.ack_failed']);
});
