import { randomUUID } from 'node:crypto';
import type { System } from '../ports.ts';

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
  randomId: () => randomUUID(),
  random: () => Math.random(),
};
