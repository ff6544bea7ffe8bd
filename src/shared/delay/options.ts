import type { OptionTable } from '../options.ts';

export const delayOptions = {
  defaultMs: {
    default: 0,
    min: 0,
    max: 31_536_000_000,
    env: 'DELAY_DEFAULT_MS',
    about: 'How long after its publish time a message without a due time of its own is due; 0: at once.',
  },
  holdMs: {
    default: 250,
    min: 0,
    max: 5_000,
    env: 'DELAY_HOLD_MS',
    about: 'A message that is due so soon after it was published waits in the function, unacked: a task would take longer.',
  },
  leaseMs: {
    default: 60_000,
    min: 20_000,
    max: 600_000,
    env: 'DELAY_LEASE_MS',
    about: 'How long one release may hold a delayed message before another dispatch of its task may take it.',
  },
  maxAttempts: {
    default: 0,
    min: 0,
    max: 1_000,
    env: 'DELAY_MAX_ATTEMPTS',
    about:
      "After so many dispatches the message is dead-lettered; no more than the queue's own limit, which drops the task. 0: the queue has none.",
  },
  storeTimeoutMs: {
    default: 10_000,
    min: 100,
    max: 60_000,
    env: 'DELAY_STORE_TIMEOUT_MS',
    about: 'How long the store may leave the outcome of a write open before the delivery or dispatch is given back.',
  },
} satisfies OptionTable;
