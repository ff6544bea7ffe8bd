import type { Time } from '../time.ts';
import type { Item } from './items.ts';
import { type OrderedKey, orderedKey } from './ordered-key.ts';
import { readyQueue } from './ready-queue.ts';

/** What a subscription has to deliver and has not out: messages in their turn, and each ordering key in its own. */
export type Queue = {
  /** Behind all others, or behind those of its key; then it waits `delayMs`, and its key with it. */
  push(item: Item, delayMs?: number): void;
  /** Offers in order what may go out, of each key one batch, until one is not admitted. */
  offer(keyBatch: number, admit: (item: Item) => boolean): void;
  /** Returns the acked messages that no redelivery takes along any more. */
  acked(item: Item): readonly Item[];
  /** It is not delivered again; returns as `acked` does. */
  dropped(item: Item): readonly Item[];
  /** Puts a delivered one back, to go out again after `delayMs`, with all later ones of its key that are out: `back`. */
  returned(item: Item, delayMs: number): { readonly back: readonly Item[]; readonly over: readonly Item[] };
  clear(): void;
};

export type QueueParts = {
  readonly time: Time;
  readonly isOrdered: boolean;
  /** A wait is over. */
  readonly wake: () => void;
};

export function createQueue({ time, isOrdered, wake }: QueueParts): Queue {
  let ready = readyQueue<Item>(({ gone }) => gone);
  const keys = new Map<string, OrderedKey>();
  const readyKeys = new Set<string>();
  const timers = new Set<() => void>();

  const nameOf = ({ message }: Item) => (isOrdered ? message.orderingKey : '');
  const note = (name: string, key: OrderedKey) => {
    if (key.isReady()) readyKeys.add(name);
    else readyKeys.delete(name);
    if (key.isEmpty()) keys.delete(name);
  };
  const later = (delayMs: number, run: () => void) => {
    const cancel = time.after(delayMs, () => {
      timers.delete(cancel);
      run();
      wake();
    });
    timers.add(cancel);
  };
  const hold = (name: string, key: OrderedKey, delayMs: number) => {
    if (delayMs <= 0) return;
    key.wait();
    later(delayMs, () => {
      key.resume();
      // A key that was empty meanwhile is another one when it comes again.
      if (keys.get(name) === key) note(name, key);
    });
  };
  const append = (item: Item, delayMs: number) => {
    if (delayMs > 0) later(delayMs, () => ready.push(item));
    else ready.push(item);
  };

  return {
    push(item, delayMs = 0) {
      const name = nameOf(item);
      if (name === '') return append(item, delayMs);
      const key = keys.get(name) ?? orderedKey();
      keys.set(name, key);
      key.add(item);
      hold(name, key, delayMs);
      note(name, key);
    },
    offer(keyBatch, admit) {
      for (const name of readyKeys) {
        const key = keys.get(name);
        const taken = key?.takeBatch(keyBatch, admit);
        if (key) note(name, key);
        // One that is ready still was not admitted; one that is not has gone, by its retention.
        if (taken === 0 && readyKeys.has(name)) break;
      }
      for (let next = ready.peek(); next && admit(next); next = ready.peek()) ready.take();
    },
    acked(item) {
      const name = nameOf(item);
      const key = keys.get(name);
      if (!key) return [item];
      const over = key.endBatch();
      note(name, key);
      return over;
    },
    dropped(item) {
      const name = nameOf(item);
      const key = keys.get(name);
      if (!key) {
        // Lets go of what is gone at the front, where messages without a consumer end by their age.
        ready.peek();
        return [];
      }
      const over = key.dropped(item);
      note(name, key);
      return over;
    },
    returned(item, delayMs) {
      const name = nameOf(item);
      const key = keys.get(name);
      if (!key) {
        append(item, delayMs);
        return { back: [item], over: [] };
      }
      const back = key.failed(item);
      const over = key.endBatch();
      hold(name, key, delayMs);
      note(name, key);
      return { back, over };
    },
    clear() {
      for (const cancel of timers) cancel();
      timers.clear();
      keys.clear();
      readyKeys.clear();
      ready = readyQueue<Item>(({ gone }) => gone);
    },
  };
}
