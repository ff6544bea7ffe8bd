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
