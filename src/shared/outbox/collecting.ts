import { malformed } from '../errors.ts';
import type { System } from '../ports.ts';
import { type CounterState, type Entry, planNumbers, topicConflict, type Unnumbered, unorderedEntry } from './decide.ts';
import { entryIdOf, type StreamStore, unorderedIdOf } from './store.ts';

/** What one transaction is to send: all is read as it is added, and written at the end. */
export type Collection = {
  /** Those with a stream are looked up, so before any write of the transaction. */
  add(group: readonly Unnumbered[]): Promise<void>;
  /** @returns every entry by its id, also those that were there before, of which nothing is written */
  write(): Promise<ReadonlyMap<string, Entry>>;
};

type Gathered = { state: CounterState; readonly fresh: Map<string, Unnumbered> };

/** @param sender whose messages without a stream these are: of two senders each has its own entry under a key */
export function collecting<Transaction>(
  { streams, system: { clock } }: { readonly streams: StreamStore<Transaction>; readonly system: Pick<System, 'clock'> },
  transaction: Transaction,
  sender: string,
): Collection {
  const byStream = new Map<string, Gathered>();
  const entries = new Map<string, Entry>();
  const unordered = new Map<string, Entry>();
  const looks: Promise<void>[] = [];

  const look = async (stream: string, group: readonly Unnumbered[]) => {
    const { state, entries: found } = await streams.lookWithin(transaction, stream, group);
    const gathered: Gathered = byStream.get(stream) ?? { state, fresh: new Map() };
    byStream.set(stream, gathered);
    group.forEach((unnumbered, index) => {
      const entry = found[index];
      const id = entryIdOf(unnumbered);
      if (entry) entries.set(id, entry);
      else gathered.fresh.set(id, unnumbered);
    });
  };

  return {
    async add(group) {
      const streamed = Map.groupBy(group, ({ stream }) => stream);
      for (const unnumbered of streamed.get('') ?? [])
        unordered.set(unorderedIdOf(unnumbered, sender), unorderedEntry(unnumbered, clock.nowMs()));
      streamed.delete('');
      const looking = [...streamed].map(([stream, ones]) => look(stream, ones));
      looks.push(...looking);
      await Promise.all(looking);
    },

    async write() {
      // One that nobody awaited is part of it too.
      await Promise.all(looks);
      for (const [stream, { state, fresh }] of byStream) {
        const group = [...fresh.values()];
        if (group.length === 0) continue;
        for (const one of group) {
          const why = topicConflict(state, group, one);
          if (why !== undefined) throw malformed(why);
        }
        const numbering = planNumbers(state, group, { nowMs: clock.nowMs(), handoffMs: 0 });
        streams.appendWithin(transaction, stream, numbering);
        for (const entry of numbering.entries) entries.set(entryIdOf(entry), entry);
      }
      for (const [id, entry] of unordered) {
        streams.setWithin(transaction, id, entry);
        entries.set(id, entry);
      }
      return entries;
    },
  };
}
