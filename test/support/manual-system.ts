import { type ManualTime, manualTime } from '../../src/emulator/time.ts';
import type { System } from '../../src/shared/ports.ts';

/** Time that a test moves, ids that count, and dice that always fall in the middle. */
export function manualSystem(): System & { readonly time: ManualTime } {
  const time = manualTime();
  let ids = 0;
  return { time, clock: time, randomId: () => `id-${++ids}`, random: () => 0.5 };
}

export type Gate = { readonly opened: Promise<void>; open(): void };

/** Something that a test lets happen. */
export function gate(): Gate {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Lets manual time pass, 10 ms at a turn, until the work is done. */
export async function settled<T>({ time }: { readonly time: ManualTime }, work: Promise<T>): Promise<T> {
  let done = false;
  const finished = work.finally(() => {
    done = true;
  });
  finished.catch(() => {});
  for (let turn = 0; turn < 500 && !done; turn++) await time.advance(10);
  return finished;
}
