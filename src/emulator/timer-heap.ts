/** Timers by their due instant, and those of one instant in the order of their making. */
export type TimerHeap = {
  /** Returns the cancel; a cancelled timer holds nothing back from the garbage collector. */
  add(dueAtMs: number, run: () => void): () => void;
  /** When the first is due. */
  nextAtMs(): number | undefined;
  /** Takes the first if it is due by then. */
  take(untilMs: number): { readonly dueAtMs: number; readonly run: () => void } | undefined;
  clear(): void;
};

type Timer = { readonly dueAtMs: number; readonly serial: number; run: (() => void) | undefined };

const isBefore = (left: Timer, right: Timer) =>
  left.dueAtMs < right.dueAtMs || (left.dueAtMs === right.dueAtMs && left.serial < right.serial);

/** Most leases end by an ack long before they are due, so cancelled timers are swept out once they are the larger half. */
const leastSwept = 1_000;

export function timerHeap(): TimerHeap {
  let heap: Timer[] = [];
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
    heap = heap.filter(({ run }) => run);
    cancelled = 0;
    for (let at = heap.length >> 1; at >= 0; at--) sink(at);
  };
  const firstAlive = (): Timer | undefined => {
    while (heap[0] && !heap[0].run) {
      takeFirst();
      cancelled -= 1;
    }
    return heap[0];
  };

  return {
    add(dueAtMs, run) {
      const timer: Timer = { dueAtMs, serial: serials++, run };
      rise(heap.push(timer) - 1);
      return () => {
        if (!timer.run) return;
        timer.run = undefined;
        cancelled += 1;
        if (cancelled > leastSwept && cancelled * 2 > heap.length) sweep();
      };
    },
    nextAtMs: () => firstAlive()?.dueAtMs,
    take(untilMs) {
      const first = firstAlive();
      if (!first?.run || first.dueAtMs > untilMs) return undefined;
      takeFirst();
      const { dueAtMs, run } = first;
      first.run = undefined;
      return { dueAtMs, run };
    },
    clear() {
      for (const timer of heap) timer.run = undefined;
      heap = [];
      cancelled = 0;
    },
  };
}
