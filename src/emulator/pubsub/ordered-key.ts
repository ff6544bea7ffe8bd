import type { Item } from './backlog.ts';
import { readyQueue } from './ready-queue.ts';

/**
 * The messages of one ordering key. At most one batch is out; a redelivered message takes all later ones of its batch with it,
 * acked or not (`docs/facts.md` A.6).
 */
export type OrderedKey = {
  add(item: Item): void;
  /** Offers the next batch in order, until one is not admitted; offers nothing while one is out or the key waits. */
  takeBatch(most: number, admit: (item: Item) => boolean): number;
  acked(item: Item): void;
  /** A dead letter leaves the order of its key for good. */
  dropped(item: Item): void;
  /** What goes back with the item: it and all after it in the batch. */
  failed(item: Item): Item[];
  /** Each wait needs a resume of its own. */
  wait(): void;
  resume(): void;
  isReady(): boolean;
  isEmpty(): boolean;
};

export function orderedKey(): OrderedKey {
  const unseen = readyQueue<Item>();
  /** Goes out again before what is unseen. */
  let returned: Item[] = [];
  /** Delivered and in order; an acked one stays until all are acked. */
  let batch: { item: Item; acked: boolean }[] = [];
  let waits = 0;
  const endIfAcked = () => {
    if (batch.every((one) => one.acked)) batch = [];
  };
  const isEmpty = () => returned.length === 0 && unseen.length === 0 && batch.length === 0;
  const isReady = () => waits === 0 && batch.length === 0 && !isEmpty();
  return {
    add: unseen.push,
    takeBatch(most, admit) {
      if (!isReady()) return 0;
      while (batch.length < most) {
        const again = returned[batch.length];
        const item = again ?? unseen.peek();
        if (!item || !admit(item)) break;
        if (!again) unseen.take();
        batch.push({ item, acked: false });
      }
      returned = returned.slice(batch.length);
      return batch.length;
    },
    acked(item) {
      const entry = batch.find((one) => one.item === item);
      if (entry) entry.acked = true;
      endIfAcked();
    },
    dropped(item) {
      batch = batch.filter((one) => one.item !== item);
      endIfAcked();
    },
    failed(item) {
      const index = batch.findIndex((one) => one.item === item);
      if (index < 0) return [];
      const back = batch.splice(index).map((one) => one.item);
      endIfAcked();
      returned = [...back, ...returned];
      return back;
    },
    wait: () => {
      waits += 1;
    },
    resume: () => {
      waits -= 1;
    },
    isReady,
    isEmpty,
  };
}
