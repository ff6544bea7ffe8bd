import { ToolkitError } from './errors.ts';
import type { Clock, System } from './ports.ts';

export const pause = (clock: Clock, delayMs: number): Promise<void> => new Promise((resolve) => void clock.after(delayMs, resolve));

/** Between half of it and all of it: two losers of one race do not meet again. */
export const jittered = (system: Pick<System, 'random'>, delayMs: number): number => delayMs * (0.5 + system.random() / 2);

/**
 * The work, or an error once the time is over; the work itself goes on and its outcome stays unknown.
 * @throws the code given
 */
export async function within<T>(
  clock: Clock,
  timeoutMs: number,
  code: 'STORE_UNAVAILABLE' | 'SERVICE_UNAVAILABLE',
  what: string,
  work: Promise<T>,
): Promise<T> {
  let cancel = () => {};
  const over = new Promise<never>((_, reject) => {
    cancel = clock.after(timeoutMs, () => reject(new ToolkitError(code, `${what} gave no answer within ${timeoutMs} ms`)));
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    cancel();
  }
}
