import type { Journal } from '../journal.ts';

const kind = 'tasks serial';
const key = 'last';

/** Large numbers as the service makes them: neighbours lie far apart, and none comes twice in 2^64, in the next process neither. */
export function createTaskIds(journal: Journal) {
  let serial = new Map(journal.load<bigint>(kind)).get(key) ?? 0n;
  return {
    next(): string {
      serial += 1n;
      journal.put(kind, key, serial);
      return String(BigInt.asUintN(64, serial * 0x9e3779b97f4a7c15n));
    },
    reset(): void {
      serial = 0n;
      journal.delete(kind, key);
    },
  };
}
