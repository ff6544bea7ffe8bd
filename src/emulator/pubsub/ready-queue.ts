/** First in, first out; taking from the front costs the same however long the queue is. */
export type ReadyQueue<T> = {
  push(item: T): void;
  take(): T | undefined;
  peek(): T | undefined;
  /** What stands in it, from the front. */
  all(): readonly T[];
};

/** Where `isGone` is given, what it tells of is passed over: nobody has to look for it when it goes. */
export function readyQueue<T>(isGone: (item: T) => boolean = () => false): ReadyQueue<T> {
  let items: T[] = [];
  let head = 0;
  const shift = () => {
    head += 1;
    if (head === items.length) {
      items = [];
      head = 0;
    } else if (head > 1_000 && head * 2 > items.length) {
      items = items.slice(head);
      head = 0;
    }
  };
  const peek = () => {
    for (let item = items[head]; item !== undefined; item = items[head]) {
      if (!isGone(item)) return item;
      shift();
    }
    return undefined;
  };
  return {
    push: (item) => void items.push(item),
    peek,
    take() {
      const item = peek();
      if (item !== undefined) shift();
      return item;
    },
    all: () => items.slice(head).filter((item) => !isGone(item)),
  };
}
