import type { Change } from './documents.ts';
import type { Predicate } from './filters.ts';

/**
 * Who has read what. Locks are shared: they stop nobody from reading, they only tell whose reads a change would make untrue.
 * A query locks its result: every document that takes part in it, or would.
 */
export type ReadLocks<Holder> = {
  lockDocument(holder: Holder, name: string): void;
  lockResult(holder: Holder, takesPart: Predicate): void;
  release(holder: Holder): void;
  /** Everybody who has read what these changes touch. */
  holdersOf(changes: Iterable<Change>): Set<Holder>;
};

export function createReadLocks<Holder>(): ReadLocks<Holder> {
  const byName = new Map<string, Set<Holder>>();
  const held = new Map<Holder, { readonly names: Set<string>; readonly results: Predicate[] }>();
  const locksOf = (holder: Holder) => {
    const locks = held.get(holder) ?? { names: new Set(), results: [] };
    held.set(holder, locks);
    return locks;
  };
  return {
    lockDocument(holder, name) {
      locksOf(holder).names.add(name);
      const holders = byName.get(name) ?? new Set();
      byName.set(name, holders.add(holder));
    },
    lockResult(holder, takesPart) {
      locksOf(holder).results.push(takesPart);
    },
    release(holder) {
      for (const name of held.get(holder)?.names ?? []) {
        const holders = byName.get(name);
        holders?.delete(holder);
        if (holders?.size === 0) byName.delete(name);
      }
      held.delete(holder);
    },
    holdersOf(changes) {
      const found = new Set<Holder>();
      if (held.size === 0) return found;
      for (const change of changes) {
        for (const holder of byName.get(change.name) ?? []) found.add(holder);
        for (const [holder, { results }] of held) if (results.some((takesPart) => touches(takesPart, change))) found.add(holder);
      }
      return found;
    },
  };
}

/** Whether a document takes part before or after its change. */
export function touches(takesPart: Predicate, { before, after }: Change): boolean {
  return (before !== undefined && takesPart(before)) || (after !== undefined && takesPart(after));
}
