import { setTimeout as pause } from 'node:timers/promises';

/** Prints how long it took since the start. */
export function timing(): (what: string) => void {
  const startMs = performance.now();
  return (what) => console.log(`${((performance.now() - startMs) / 1_000).toFixed(1)} s: ${what}`);
}

/** Asks until it is so, or the time is over. */
export async function holds(withinMs: number, isSo: () => boolean | Promise<boolean>): Promise<boolean> {
  for (const untilMs = performance.now() + withinMs; performance.now() < untilMs; await pause(50)) if (await isSo()) return true;
  return false;
}
