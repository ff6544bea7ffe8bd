import type { OptionTable } from '../options.ts';

export const dedupOptions = {
  leaseMs: {
    default: 60_000,
    min: 100,
    max: 3_600_000,
    env: 'DEDUP_LEASE_MS',
    about: 'How long one run may hold a key before another delivery may take it; renewed while the handler runs.',
  },
  ttlSeconds: {
    default: 691_200,
    min: 60,
    max: 8_640_000,
    env: 'DEDUP_TTL_SECONDS',
    about: "How long a finished key suppresses later deliveries; keep it above the subscription's retention.",
  },
  maxAttempts: {
    default: 0,
    min: 0,
    max: 1_000,
    env: 'DEDUP_MAX_ATTEMPTS',
    about: 'After so many failed runs the message is dead-lettered; 0 leaves that to the subscription.',
  },
  maxResultBytes: {
    default: 65_536,
    min: 0,
    max: 900_000,
    env: 'DEDUP_MAX_RESULT_BYTES',
    about: 'A result that takes more is not kept, with a warning; a Firestore document holds 1 MiB.',
  },
  storeTimeoutMs: {
    default: 10_000,
    min: 100,
    max: 60_000,
    env: 'DEDUP_STORE_TIMEOUT_MS',
    about: 'How long the store may leave the outcome of a write open before the delivery is given back.',
  },
} satisfies OptionTable;

export const versionedOptions = {
  maxEvents: {
    default: 1_000,
    min: 1,
    max: 10_000,
    env: 'VERSIONED_MAX_EVENTS',
    about: 'How many events a document remembers; each takes about 45 bytes of it.',
  },
  conflictTries: {
    default: 20,
    min: 1,
    max: 1_000,
    env: 'VERSIONED_CONFLICT_TRIES',
    about: 'How often an event is tried on a document that others change at the same time before the delivery is given back.',
  },
  storeTimeoutMs: {
    default: 10_000,
    min: 100,
    max: 60_000,
    env: 'VERSIONED_STORE_TIMEOUT_MS',
    about: 'How long the store may leave the outcome of a save open before the delivery is given back.',
  },
} satisfies OptionTable;
