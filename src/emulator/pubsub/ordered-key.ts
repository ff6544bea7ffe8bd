import type { Item } from './backlog.ts';

/**
 * The messages of one ordering key. At most one batch is out; a redelivered message takes all later ones of its batch with it,
 * acked or not (`docs/facts.md` A.6).
 */
export type OrderedKey = {
  add(item: Item): void;
  /** The next batch, in order; empty while one is out or the key waits for its back-off. */
  takeBatch(most: number): Item[];
  /** True when that ended the batch and more is waiting. */
  acked(item: Item): void;
  /** What goes back with the item: it and all after it in the batch. */
  failed(item: Item): Item[];
  wait(): void;
  resume(): void;
  isReady(): boolean;
  isEmpty(): boolean;
};

export function orderedKey(): OrderedKey {
  let pending: Item[] = [];
  /** Delivered and in order; an acked one stays until all before it are acked. */
  let batch: { item: Item; acked: boolean }[] = [];
  let waiting = false;
  return {
    add: (item) => void pending.push(item),
    takeBatch(most) {
      if (waiting || batch.length > 0) return [];
      const items = pending.slice(0, most);
      pending = pending.slice(items.length);
      batch = items.map((item) => ({ item, acked: false }));
      return items;
    },
    acked(item) {
      const entry = batch.find((one) => one.item === item);
      if (entry) entry.acked = true;
      if (batch.every((one) => one.acked)) batch = [];
    },
    failed(item) {
      const index = batch.findIndex((one) => one.item === item);
      const back = index < 0 ? [] : batch.slice(index).map((one) => one.item);
      batch = index < 0 ? batch : batch.slice(0, index);
      if (batch.every((one) => one.acked)) batch = [];
      pending = [...back, ...pending];
      return back;
    },
    wait: () => {
      waiting = true;
    },
    resume: () => {
      waiting = false;
    },
    isReady: () => !waiting && batch.length === 0 && pending.length > 0,
    isEmpty: () => pending.length === 0 && batch.length === 0,
  };
}
