import type { OptionTable } from '../options.ts';

export const fifoOptions = {
  leaseMs: {
    default: 60_000,
    min: 100,
    max: 3_600_000,
    env: 'FIFO_LEASE_MS',
    about: 'How long one process may hold a stream before another may take it; renewed while the handler runs.',
  },
  storeTimeoutMs: {
    default: 10_000,
    min: 100,
    max: 60_000,
    env: 'FIFO_STORE_TIMEOUT_MS',
    about: 'How long the store may leave the outcome of a write open before the delivery is given back.',
  },
} satisfies OptionTable;
