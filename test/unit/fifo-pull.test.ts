import { describe, expect, test } from 'vitest';
import { checkFifoSubscription, type FifoSubscriptionRules } from '../../src/shared/fifo/subscription-check.ts';
import type { Context } from '../../src/shared/ports.ts';
import { ack } from '../../src/shared/verdict.ts';
import { fakePull } from '../support/fake-subscription.ts';
import { gate } from '../support/manual-system.ts';

describe('a pull', () => {
  test('has its fifo layer sweep every minute, one sweep at a time, and not once it is closed', async () => {
    const begunAtMs: number[] = [];
    const hold = gate();
    const handle = Object.assign(async () => ack('processed'), {
      sweep: async () => {
        begunAtMs.push(system.clock.nowMs() - startMs);
        if (begunAtMs.length === 2) await hold.opened;
        if (begunAtMs.length === 1) throw new Error('store down');
        return {};
      },
    });
    const { system, pull } = fakePull(handle, { options: { sweepEveryMs: 60_000 } });
    const startMs = system.clock.nowMs();
    // Between half of a minute and all of it, so that two processes do not sweep together.
    await system.time.advance(44_999);
    expect(begunAtMs).toEqual([]);
    await system.time.advance(300_000);
    expect(begunAtMs).toEqual([45_000, 90_000]);
    const closed = pull.close();
    let isClosed = false;
    void closed.then(() => {
      isClosed = true;
    });
    await system.time.advance(1_000);
    expect(isClosed).toBe(false);
    hold.open();
    await closed;
    await system.time.advance(300_000);
    expect(begunAtMs).toEqual([45_000, 90_000]);
  });

  test('tells a handler how many it handles at once', async () => {
    const seen: Context[] = [];
    const { fake, pull } = fakePull(
      async (_, context) => {
        seen.push(context);
        return ack('processed');
      },
      { options: { concurrency: 7 } },
    );
    fake.deliver('1');
    await pull.close();
    expect(seen[0]).toMatchObject({ places: 7 });
  });
});

describe('a subscription under fifo', () => {
  const facts = {
    ...{ ackDeadlineSeconds: 10, retentionSeconds: 604_800, topicRetentionSeconds: undefined, retainAcked: false },
    ...{ maxDeliveryAttempts: undefined, retryPolicy: { minimumSeconds: 10, maximumSeconds: 600 }, exactlyOnce: false },
    ...{ ordering: false, isPush: false },
  };
  const found = (changes: object, rules: Partial<FifoSubscriptionRules> = {}) =>
    checkFifoSubscription({ ...facts, ...changes }, { early: 'park', leaseMs: 60_000, ...rules }).map(({ level }) => level);

  test.each<[string, object, Partial<FifoSubscriptionRules>, string[]]>([
    ['without ordering and dead letters fits', {}, {}, []],
    ['push with ordering is refused', { isPush: true, ordering: true }, {}, ['refuse']],
    ['pull with ordering fits while early messages are parked', { ordering: true }, {}, []],
    ['pull with ordering is refused where they are given back', { ordering: true }, { early: 'nack' }, ['refuse']],
    ['whose attempts outlast the lease fits', { maxDeliveryAttempts: 7 }, {}, []],
    ['whose attempts end with the lease is warned of', { maxDeliveryAttempts: 6 }, {}, ['warn']],
    ['without back-off is warned of', { maxDeliveryAttempts: 100, retryPolicy: undefined }, {}, ['warn']],
    ['whose early messages are given back needs 100 attempts', { maxDeliveryAttempts: 99 }, { early: 'nack' }, ['refuse']],
    ['with 100 attempts may give them back', { maxDeliveryAttempts: 100 }, { early: 'nack' }, []],
  ])('%s', (_, changes, rules, levels) => {
    expect(found(changes, rules)).toEqual(levels);
  });
});
