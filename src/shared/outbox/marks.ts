import { fitting } from './limits.ts';
import type { Mark, StreamStore } from './store.ts';

/**
 * Marks entries as published; resolves once they are.
 * @throws STORE_UNAVAILABLE, and then a relay will publish copies
 */
export type Marker = (marks: readonly Mark[]) => Promise<void>;

type Waiting = { readonly marks: readonly Mark[]; resolve(): void; reject(error: unknown): void };

/** While so many are under way the next marks gather. */
const commitsAtOnce = 4;

/** Those of all streams share commits: a commit for each would be a call more for every stream. */
export function createMarker(streams: StreamStore, keepMs: number): Marker {
  const waiting: Waiting[] = [];
  let commits = 0;

  /** As many as fit one commit, one at least; what is kept of a body counts. */
  const next = (): Waiting[] => {
    const taken = waiting.splice(0, 1);
    const marks = taken.flatMap((one) => one.marks);
    for (let [other] = waiting; other; [other] = waiting) {
      marks.push(...other.marks);
      if (fitting(marks, ({ entry }) => (entry.keepBody ? entry.message : null)) < marks.length) break;
      taken.push(other);
      waiting.shift();
    }
    return taken;
  };

  const commit = async () => {
    commits += 1;
    while (waiting.length > 0) {
      const taken = next();
      const all = taken.flatMap(({ marks }) => marks);
      try {
        await streams.markPublished(all, keepMs);
        for (const { resolve } of taken) resolve();
      } catch (error) {
        for (const { reject } of taken) reject(error);
      }
    }
    commits -= 1;
  };

  return (marks) =>
    new Promise((resolve, reject) => {
      waiting.push({ marks, resolve, reject });
      if (commits < commitsAtOnce) void commit();
    });
}
