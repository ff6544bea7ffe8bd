import type { OptionTable } from '../options.ts';

export const pullOptions = {
  concurrency: {
    default: 100,
    min: 1,
    max: 10_000,
    env: 'PULL_CONCURRENCY',
    about: 'How many messages are handled at once; what the client receives beyond waits, and is extended.',
  },
  maxExtensionMs: {
    default: 3_600_000,
    min: 1_000,
    max: 86_400_000,
    env: 'PULL_MAX_EXTENSION_MS',
    about: "How long the client extends a delivery, from its receipt: the client's own `maxExtensionTime`, where that was changed.",
  },
  sweepEveryMs: {
    default: 60_000,
    min: 1_000,
    max: 3_600_000,
    env: 'PULL_SWEEP_EVERY_MS',
    about: 'How often a pull has its fifo layer look for parked messages that were forgotten.',
  },
  closeTimeoutMs: {
    default: 30_000,
    min: 0,
    max: 3_600_000,
    env: 'PULL_CLOSE_TIMEOUT_MS',
    about: 'How long closing waits for running handlers before it aborts their signals; a second later it leaves them.',
  },
} satisfies OptionTable;
