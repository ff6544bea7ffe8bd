import type { Time } from '../time.ts';
import { type Timer, timerHeap } from '../timer-heap.ts';
import type { Task } from './task.ts';

export type Waiting = {
  add(task: Task, dueAtMs: number): void;
  remove(task: Task): void;
  stop(): void;
};

/** Tasks that are not due yet, with one timer for all of them: `ready` gets each when it is, and those of one instant in their order. */
export function createWaiting(time: Time, ready: (task: Task) => void): Waiting {
  const heap = timerHeap<Task>();
  const entries = new Map<Task, Timer<Task>>();
  let armed: { readonly dueAtMs: number; readonly cancel: () => void } | undefined;

  const arm = () => {
    const dueAtMs = heap.nextAtMs();
    if (dueAtMs === undefined || (armed && armed.dueAtMs <= dueAtMs)) return;
    armed?.cancel();
    armed = { dueAtMs, cancel: time.at(dueAtMs, fire) };
  };
  /** One at a time: the next one of the same instant has a timer after what this one makes. */
  const fire = () => {
    armed = undefined;
    const due = heap.take(time.nowMs());
    if (due) entries.delete(due.value);
    arm();
    if (due) ready(due.value);
  };
  return {
    add(task, dueAtMs) {
      entries.set(task, heap.add(dueAtMs, task));
      arm();
    },
    remove(task) {
      const entry = entries.get(task);
      if (!entry) return;
      heap.cancel(entry);
      entries.delete(task);
    },
    stop: () => armed?.cancel(),
  };
}
