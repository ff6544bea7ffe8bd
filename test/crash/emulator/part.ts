import type { Addresses } from '../../../bench/emulator/servers.ts';

/** One promise after one kill: how much was confirmed, and what of it does not hold. */
export type Finding = {
  readonly promise: string;
  readonly confirmed: number;
  readonly lost: readonly string[];
  readonly repeated: readonly string[];
};

/** One service under load, and the book of what it has confirmed. */
export type Part = {
  /** Once, on the first process. */
  prepare(addresses: Addresses): Promise<void>;
  /** Runs until the process is killed, and resolves once nothing waits for an answer any more. */
  load(addresses: Addresses, isKilled: () => boolean): Promise<void>;
  /** Compares the next process with the book. */
  check(addresses: Addresses): Promise<Finding[]>;
  close(): void;
};

/** Repeats a step until it fails for the kill; any other failure is the run's. */
export async function untilKilled(isKilled: () => boolean, step: () => Promise<void>): Promise<void> {
  while (!isKilled()) {
    try {
      await step();
    } catch (error) {
      if (!isKilled()) throw error;
    }
  }
}

export const inLanes = (count: number, lane: (index: number) => Promise<void>) =>
  Promise.all(Array.from({ length: count }, (_, i) => lane(i)));

export const textOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString();
