import type { OptionTable } from '../options.ts';

export const outboxOptions = {
  handoffMs: {
    default: 30_000,
    min: 1_000,
    max: 600_000,
    env: 'OUTBOX_HANDOFF_MS',
    about: 'How long a publisher has to publish what it numbered before the relay does.',
  },
  relayLeaseMs: {
    default: 30_000,
    min: 1_000,
    max: 600_000,
    env: 'OUTBOX_RELAY_LEASE_MS',
    about: 'How long one relay may hold a stream before another may take it; renewed when a third of it is over.',
  },
  relayPollMs: {
    default: 10_000,
    min: 100,
    max: 600_000,
    env: 'OUTBOX_RELAY_POLL_MS',
    about: 'How long a running relay waits before it looks again, where nothing wakes it sooner.',
  },
  stubTtlSeconds: {
    default: 691_200,
    min: 691_200,
    max: 8_640_000,
    env: 'OUTBOX_STUB_TTL_SECONDS',
    about: 'How long a published entry remembers its number, so that the same key gets it again.',
  },
  storeTimeoutMs: {
    default: 10_000,
    min: 100,
    max: 60_000,
    env: 'OUTBOX_STORE_TIMEOUT_MS',
    about: 'How long the store may leave the outcome of a commit open before the publisher is told.',
  },
} satisfies OptionTable;
