import type { Item } from './items.ts';
import { readyQueue } from './ready-queue.ts';

/**
 * The messages of one ordering key. At most one batch is out; a redelivered message takes all later ones of its batch with it,
 * acked or not (`docs/facts.md` A.6).
 */
export type OrderedKey = {
  add(item: Item): void;
  /** Offers the next batch in order, until one is not admitted; offers nothing while one is out or the key waits. */
  takeBatch(most: number, admit: (item: Item) => boolean): number;
  /** After an ack: the batch that is over by it. */
  endBatch(): readonly Item[];
  /** It leaves the order for good, as a dead letter does; returns the batch that is over by it. */
  dropped(item: Item): readonly Item[];
  /** What goes back with the item: it and all after it in the batch. */
  failed(item: Item): readonly Item[];
  /** Each wait needs a resume of its own. */
  wait(): void;
  resume(): void;
  isReady(): boolean;
  isEmpty(): boolean;
};

export function orderedKey(): OrderedKey {
  const unseen = readyQueue<Item>(({ gone }) => gone);
  /** Goes out again before what is unseen. */
  let returned: readonly Item[] = [];
  /** Delivered and in order; an acked one stays until all are acked. */
  let batch: Item[] = [];
  let waits = 0;

  const endBatch = () => {
    if (!batch.every(({ acked }) => acked)) return [];
    const over = batch;
    batch = [];
    return over;
  };
  const isEmpty = () => batch.length === 0 && returned.every(({ gone }) => gone) && unseen.peek() === undefined;
  const isReady = () => waits === 0 && batch.length === 0 && !isEmpty();
  return {
    add: unseen.push,
    takeBatch(most, admit) {
      if (!isReady()) return 0;
      returned = returned.filter(({ gone }) => !gone);
      while (batch.length < most) {
        const again = returned[batch.length];
        const item = again ?? unseen.peek();
        if (!item || !admit(item)) break;
        if (!again) unseen.take();
        batch.push(item);
      }
      returned = returned.slice(batch.length);
      return batch.length;
    },
    endBatch,
    dropped(item) {
      batch = batch.filter((one) => one !== item);
      return endBatch();
    },
    failed(item) {
      const index = batch.indexOf(item);
      if (index < 0) return [];
      const back = batch.splice(index);
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
