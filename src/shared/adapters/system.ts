import { randomUUID } from 'node:crypto';
import type { System } from '../ports.ts';

/** Each process has a prefix of its own: a count behind it is as unique as another UUID, and costs less. */
const processId = randomUUID();
let ids = 0;

/** The machine's own time and chance. */
export const system: System = {
  clock: {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    after(delayMs, run) {
      const timer = setTimeout(run, delayMs);
      return () => clearTimeout(timer);
    },
  },
  randomId: () => `${processId}-${++ids}`,
  random: () => Math.random(),
};
