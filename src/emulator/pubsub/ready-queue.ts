/** First in, first out; taking from the front costs the same however long the queue is. */
export type ReadyQueue<T> = { readonly length: number; push(item: T): void; take(): T | undefined; peek(): T | undefined };

export function readyQueue<T>(): ReadyQueue<T> {
  let items: T[] = [];
  let head = 0;
  return {
    get length() {
      return items.length - head;
    },
    push: (item) => void items.push(item),
    peek: () => items[head],
    take() {
      const item = items[head];
      if (item === undefined) return undefined;
      head += 1;
      if (head > 1_000 && head * 2 > items.length) {
        items = items.slice(head);
        head = 0;
      }
      return item;
    },
  };
}
