/** What waits, by its due instant, and that of one instant in the order of its coming. */
export type TimerHeap<Value> = {
  add(dueAtMs: number, value: Value): Timer<Value>;
  /** A cancelled timer holds nothing back from the garbage collector; one that was taken stays as it is. */
  cancel(timer: Timer<Value>): void;
  /** When the first is due. */
  nextAtMs(): number | undefined;
  /** Takes the first if it is due by then. */
  take(untilMs: number): { readonly dueAtMs: number; readonly value: Value } | undefined;
  clear(): void;
};

export type Timer<Value> = { readonly dueAtMs: number; readonly serial: number; value: Value | undefined };

const isBefore = (left: Timer<unknown>, right: Timer<unknown>) =>
  left.dueAtMs < right.dueAtMs || (left.dueAtMs === right.dueAtMs && left.serial < right.serial);

/** Most leases end by an ack long before they are due, so cancelled timers are swept out once they are the larger half. */
const leastSwept = 1_000;

export function timerHeap<Value>(): TimerHeap<Value> {
  let heap: Timer<Value>[] = [];
  let cancelled = 0;
  let serials = 0;

  const rise = (from: number) => {
    const timer = heap[from];
    if (!timer) return;
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (!parent || !isBefore(timer, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = timer;
  };
  const sink = (from: number) => {
    const timer = heap[from];
    if (!timer) return;
    let at = from;
    for (;;) {
      const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
      const below = right && left && isBefore(right, left) ? 2 * at + 2 : 2 * at + 1;
      const child = heap[below];
      if (!child || !isBefore(child, timer)) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = timer;
  };
  const takeFirst = () => {
    const [first] = heap;
    const last = heap.pop();
    if (last && last !== first) {
      heap[0] = last;
      sink(0);
    }
    return first;
  };
  const sweep = () => {
    heap = heap.filter(({ value }) => value !== undefined);
    cancelled = 0;
    for (let at = heap.length >> 1; at >= 0; at--) sink(at);
  };
  const firstAlive = (): Timer<Value> | undefined => {
    while (heap[0] && heap[0].value === undefined) {
      takeFirst();
      cancelled -= 1;
    }
    return heap[0];
  };

  return {
    add(dueAtMs, value) {
      const timer: Timer<Value> = { dueAtMs, serial: serials++, value };
      rise(heap.push(timer) - 1);
      return timer;
    },
    cancel(timer) {
      if (timer.value === undefined) return;
      timer.value = undefined;
      cancelled += 1;
      if (cancelled > leastSwept && cancelled * 2 > heap.length) sweep();
    },
    nextAtMs: () => firstAlive()?.dueAtMs,
    take(untilMs) {
      const first = firstAlive();
      if (first?.value === undefined || first.dueAtMs > untilMs) return undefined;
      takeFirst();
      const { dueAtMs, value } = first;
      first.value = undefined;
      return { dueAtMs, value };
    },
    clear() {
      for (const timer of heap) timer.value = undefined;
      heap = [];
      cancelled = 0;
    },
  };
}
