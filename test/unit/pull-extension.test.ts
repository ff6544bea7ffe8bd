import { describe, expect, test } from 'vitest';
import { ack, deadLetter, nack, type Verdict } from '../../src/shared/verdict.ts';
import { keptDeadLetters } from '../../src/testing/doubles.ts';
import { fakePull } from '../support/fake-subscription.ts';
import { gate } from '../support/manual-system.ts';

const options = { maxExtensionMs: 5_000, concurrency: 1 };
const timeIsOver = 'the delivery is extended no more: 5000 ms since its receipt are over';
const refused = 'Pub/Sub refused to extend the delivery: INVALID : late';
const refusing = { modAckWithResponse: () => Promise.reject(new Error('INVALID : late')) };

/** A pull whose handler has its signal, and ends by a verdict when the test says so. */
function waitingPull(verdict: Verdict = ack('processed')) {
  const hold = gate();
  const signals: AbortSignal[] = [];
  const deadLetters = keptDeadLetters();
  const handle = async (_: unknown, { signal }: { readonly signal: AbortSignal }) => {
    signals.push(signal);
    await hold.opened;
    return verdict;
  };
  return { ...fakePull(handle, { options, deadLetters }), hold, signals, deadLetters };
}

describe('when the client extends a delivery no more', () => {
  test('the signal says so at that instant and not before', async () => {
    const { fake, system, signals, counted, logged } = waitingPull();
    fake.deliver('1');
    await system.time.advance(4_999);
    expect(signals[0]?.aborted).toBe(false);
    await system.time.advance(1);
    expect(signals[0]?.reason).toMatchObject({ message: timeIsOver });
    expect(counted).toEqual(['ptk.pull.extension_ended time']);
    expect(logged).toEqual([`warn: delivery lost {"messageId":"1","reason":"${timeIsOver}"}`]);
    expect(fake.done).toEqual([]);
  });

  test('because Pub/Sub refuses it, the signal says that', async () => {
    const { fake, system, signals, counted } = waitingPull();
    const delivery = fake.deliver('1', refusing);
    await expect(delivery.modAckWithResponse(10)).rejects.toThrow('INVALID : late');
    expect(signals[0]?.reason).toMatchObject({ message: refused });
    await system.time.advance(5_000);
    expect(counted).toEqual(['ptk.pull.extension_ended refused']);
  });

  test('a handler that asks for its signal only then finds it aborted', async () => {
    const hold = gate();
    const signals: AbortSignal[] = [];
    const { fake, system } = fakePull(
      async (_, context) => {
        await hold.opened;
        signals.push(context.signal);
        return ack('processed');
      },
      { options },
    );
    fake.deliver('1');
    await system.time.advance(5_000);
    hold.open();
    await system.time.settled();
    expect(signals[0]?.reason).toMatchObject({ message: timeIsOver });
  });

  test.each([ack('processed'), ack('duplicate'), nack('failed'), nack('inProgress', 1_000), deadLetter('conflict', 'why')])(
    'the later verdict %o becomes a nack, and no dead letter',
    async (verdict) => {
      const { fake, system, hold, deadLetters } = waitingPull(verdict);
      fake.deliver('1');
      await system.time.advance(5_000);
      hold.open();
      await system.time.advance(1_000);
      expect(fake.done).toEqual(['nack 1']);
      expect(deadLetters.kept).toEqual([]);
    },
  );

  test('while its dead letter is stored, it is not acked', async () => {
    const stored = gate();
    const { fake, system } = fakePull(async () => deadLetter('conflict', 'why'), {
      options,
      deadLetters: { publish: () => stored.opened },
    });
    fake.deliver('1');
    await system.time.advance(5_000);
    stored.open();
    await system.time.settled();
    expect(fake.done).toEqual(['nack 1']);
  });

  test('and it still waits, it is given back and never started', async () => {
    const { fake, system, hold, signals } = waitingPull();
    fake.deliver('1');
    await system.time.advance(1_000);
    fake.deliver('2', { received: system.clock.nowMs() - 2_500 });
    await system.time.advance(2_499);
    expect(fake.done).toEqual([]);
    await system.time.advance(1);
    expect(fake.done).toEqual(['nack 2']);
    hold.open();
    await system.time.settled();
    expect(fake.done).toEqual(['nack 2', 'ack 1']);
    expect(signals).toHaveLength(1);
  });

  test('and its nack is held, it is given back at once', async () => {
    const { fake, system } = fakePull(async () => nack('inProgress', 60_000), { options });
    fake.deliver('1', { received: system.clock.nowMs() - 4_900 });
    await system.time.advance(99);
    expect(fake.done).toEqual([]);
    await system.time.advance(1);
    expect(fake.done).toEqual(['nack 1']);
    await system.time.advance(1_000);
    expect(fake.done).toEqual(['nack 1']);
  });
});

test('a delivery that is settled leaves no timer behind', async () => {
  const { fake, system, pull, timers } = fakePull(async ({ messageId }) => {
    if (messageId === 'late') await Promise.race([]);
    return messageId === 'busy' ? nack('inProgress', 60_000) : ack('processed');
  });
  fake.deliver('1');
  await system.time.settled();
  expect(timers.size).toBe(0);
  fake.deliver('busy');
  await system.time.advance(1_000);
  expect([fake.done, timers.size]).toEqual([['ack 1', 'nack busy'], 0]);
  for (const id of ['busy', 'late']) fake.deliver(id);
  const closed = pull.close();
  await system.time.advance(31_000);
  await closed;
  expect(timers.size).toBe(0);
});

test('after its ack a delivery is not lost any more', async () => {
  const { fake, system, counted, logged } = fakePull(async () => ack('processed'), { options });
  const delivery = fake.deliver('1', refusing);
  await system.time.settled();
  await expect(delivery.modAckWithResponse(10)).rejects.toThrow('INVALID : late');
  await system.time.advance(5_000);
  expect([counted, logged, fake.done]).toEqual([[], [], ['ack 1']]);
});

test('a delivery is extended for an hour where nothing else is said', async () => {
  const { fake, system, counted } = fakePull(() => Promise.race([]));
  fake.deliver('1');
  await system.time.advance(3_599_999);
  expect(counted).toEqual([]);
  await system.time.advance(1);
  expect(counted).toEqual(['ptk.pull.extension_ended time']);
});
