import type { Subscription } from '@google-cloud/pubsub';
import { describe, expect, test } from 'vitest';
import { checkSubscription, type SubscriptionFacts } from '../../src/shared/dedup/subscription-check.ts';
import { checkedSubscription } from '../../src/shared/transports/subscription.ts';
import { silentLog } from '../../src/testing/doubles.ts';

/** A pull subscription that fits the defaults: a lease of 60 s, records of 8 days. */
const fitting: SubscriptionFacts = {
  ackDeadlineSeconds: 10,
  retentionSeconds: 604_800,
  topicRetentionSeconds: undefined,
  retainAcked: false,
  maxDeliveryAttempts: undefined,
  retryPolicy: { minimumSeconds: 10, maximumSeconds: 600 },
  exactlyOnce: false,
  ordering: false,
  isPush: false,
};
const defaults = { leaseMs: 60_000, ttlSeconds: 691_200 };

const found = (facts: Partial<SubscriptionFacts>, settings: Partial<typeof defaults> = {}) =>
  checkSubscription({ ...fitting, ...facts }, { ...defaults, ...settings }).map(({ level, text }) => `${level}: ${text}`);

test('a subscription with the defaults of Pub/Sub and a retry policy fits the defaults of dedup', () => {
  expect(found({})).toEqual([]);
});

describe('the lease', () => {
  test.each<[string, number, Partial<SubscriptionFacts>]>([
    ['a push subscription', 10_000, { isPush: true }],
    ['a slow push subscription', 600_000, { isPush: true, ackDeadlineSeconds: 600 }],
    ['a pull subscription', 10_000, {}],
    ['a pull subscription whose deadline was never read', 10_000, { ackDeadlineSeconds: 0 }],
    ['a slow pull subscription', 600_000, { ackDeadlineSeconds: 600 }],
    ['exactly-once delivery, for which the client asks for a minute', 60_000, { exactlyOnce: true }],
    ['slow exactly-once delivery', 61_000, { exactlyOnce: true, ackDeadlineSeconds: 61 }],
    ['push, which has no exactly-once delivery', 10_000, { isPush: true, exactlyOnce: true }],
  ])('for %s must be %d ms at least', (_, leastMs, facts) => {
    expect(found(facts, { leaseMs: leastMs })).toEqual([]);
    expect(found(facts, { leaseMs: leastMs - 1 })).toEqual([
      `refuse: leaseMs is ${leastMs - 1}; it must be at least ${leastMs}, the ack deadline in force`,
    ]);
  });
});

describe('the lifetime of a record', () => {
  test('must be the retention at least', () => {
    expect(found({}, { ttlSeconds: 604_800 })).toEqual([]);
    expect(found({}, { ttlSeconds: 604_799 })).toEqual([
      'refuse: ttlSeconds is 604799; it must be at least 604800, for so long the subscription may deliver a message again',
    ]);
    expect(found({ retentionSeconds: 600 }, { ttlSeconds: 600 })).toEqual([]);
    expect(found({ retentionSeconds: 600 }, { ttlSeconds: 599 })).toHaveLength(1);
  });

  test('is warned about where a seek may bring acked messages back after it', () => {
    expect(found({ retainAcked: true }, { ttlSeconds: 604_800 })).toEqual([]);
    expect(found({ retainAcked: true }, { ttlSeconds: 604_799 })[1]).toBe(
      'warn: ttlSeconds is 604799; the subscription retains acked messages for 604800 s, and a seek may deliver them again after that',
    );
  });

  test('is warned about where the topic retains messages for longer', () => {
    expect(found({ topicRetentionSeconds: 691_200 })).toEqual([]);
    expect(found({ topicRetentionSeconds: 691_201 })).toEqual([
      'warn: ttlSeconds is 691200; the topic retains messages for 691201 s, and a seek may deliver them again after that',
    ]);
  });

  test('is warned about where a dead letter may be published again after it', () => {
    expect(found({ maxDeliveryAttempts: 5 }, { ttlSeconds: 3_283_200 })).toEqual([]);
    expect(found({ maxDeliveryAttempts: 5 }, { ttlSeconds: 3_283_199 })).toEqual([
      'warn: ttlSeconds is 3283199; a dead letter may be published again up to 3283200 s after its message',
    ]);
  });
});

test('a subscription without a retry policy is warned about', () => {
  expect(found({ retryPolicy: undefined })).toEqual([
    'warn: retryPolicy is not set; a message that is given back comes again at once (minimumBackoff of 1 s or more is advised)',
  ]);
});

describe('the check at start', () => {
  const check = async (getMetadata: () => Promise<unknown>, options: object = {}) => {
    const warned: string[] = [];
    const log = { ...silentLog, warn: (fields: object, text: string) => void warned.push(`${text}: ${JSON.stringify(fields)}`) };
    const subscription = { name: 'projects/p/subscriptions/s', getMetadata } as unknown as Subscription;
    const outcome = await checkedSubscription(subscription, { options, log }).catch((error: unknown) => error);
    return { outcome, warned };
  };

  test('takes what Pub/Sub does not say for its default', async () => {
    const { outcome, warned } = await check(async () => [{}]);
    expect(outcome).toEqual({ ...fitting, retryPolicy: undefined });
    expect(warned).toEqual([expect.stringContaining('retryPolicy is not set')]);
  });

  test('throws every refusal in one message, and logs the warnings', async () => {
    const metadata = { ackDeadlineSeconds: 20, messageRetentionDuration: { seconds: '1209600', nanos: 0 } };
    const { outcome, warned } = await check(async () => [metadata], { leaseMs: 19_999 });
    expect(outcome).toMatchObject({
      code: 'INVALID_SETTINGS',
      message:
        'projects/p/subscriptions/s does not fit dedup: leaseMs is 19999; it must be at least 20000, the ack deadline in force; and ' +
        'ttlSeconds is 691200; it must be at least 1209600, for so long the subscription may deliver a message again',
    });
    expect(warned).toHaveLength(1);
  });

  test('lets a subscription pass that it may not read, and says so', async () => {
    const { outcome, warned } = await check(() => Promise.reject(new Error('7 PERMISSION_DENIED')), { leaseMs: 100 });
    expect(outcome).toBeUndefined();
    expect(warned).toEqual([
      'subscription not read, so whether it fits dedup is not checked: ' +
        '{"subscription":"projects/p/subscriptions/s","reason":"7 PERMISSION_DENIED"}',
    ]);
  });

  test('refuses options that dedup would refuse', async () => {
    expect((await check(async () => [{}], { leaseMs: 99 })).outcome).toMatchObject({ code: 'INVALID_SETTINGS' });
  });
});
