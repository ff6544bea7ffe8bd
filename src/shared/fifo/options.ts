import type { OptionTable } from '../options.ts';

export const fifoOptions = {
  leaseMs: {
    default: 60_000,
    min: 100,
    max: 3_600_000,
    env: 'FIFO_LEASE_MS',
    about: 'How long one process may hold a stream before another may take it; renewed while the handler runs.',
  },
  holdMs: {
    default: 0,
    min: 0,
    max: 30_000,
    env: 'FIFO_HOLD_MS',
    about:
      'How long an early delivery waits in its process for the one before it; then it is given back. Each one takes a place of the concurrency.',
  },
  storeTimeoutMs: {
    default: 10_000,
    min: 100,
    max: 60_000,
    env: 'FIFO_STORE_TIMEOUT_MS',
    about: 'How long the store may leave the outcome of a write open before the delivery is given back.',
  },
} satisfies OptionTable;
