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
      'How long an early delivery waits in its process for the one before it, before it is parked or given back. Each one takes a place of the concurrency.',
  },
  holdMessages: {
    default: 50,
    min: 0,
    max: 10_000,
    env: 'FIFO_HOLD_MESSAGES',
    about:
      'How many deliveries wait in this process at most, and always fewer than a pull handles at once; the others are parked or given back.',
  },
  commitEvery: {
    default: 1,
    min: 1,
    max: 200,
    env: 'FIFO_COMMIT_EVERY',
    about:
      'How many numbers that are there one after the other are run for one write of the cursor. A process that dies in between repeats up to so many.',
  },
  maxAttempts: {
    default: 10,
    min: 0,
    max: 1_000,
    env: 'FIFO_MAX_ATTEMPTS',
    about:
      'How often the number at the head may fail, or take its process down, before its stream is blocked; waiting counts for nothing. 0: no limit.',
  },
  sweepAfterMs: {
    default: 60_000,
    min: 1_000,
    max: 3_600_000,
    env: 'FIFO_SWEEP_AFTER_MS',
    about: 'How long after a message was parked, or looked at, a sweep looks whether it was forgotten.',
  },
  gapTimeoutMs: {
    default: 300_000,
    min: 0,
    max: 86_400_000,
    env: 'FIFO_GAP_TIMEOUT_MS',
    about: 'How long a stream may wait for a number that has not come before each sweep looks it up and reports it.',
  },
  startSettleMs: {
    default: 1_000,
    min: 0,
    max: 30_000,
    env: 'FIFO_START_SETTLE_MS',
    about: 'How long the first message of a stream waits for lower ones, where a consumer starts at the first number that it sees.',
  },
  storeTimeoutMs: {
    default: 10_000,
    min: 100,
    max: 60_000,
    env: 'FIFO_STORE_TIMEOUT_MS',
    about: 'How long the store may leave the outcome of a write open before the delivery is given back.',
  },
} satisfies OptionTable;
