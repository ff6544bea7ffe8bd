import { ToolkitError } from './errors.ts';
import type { Clock, System } from './ports.ts';

export const pause = (clock: Clock, delayMs: number): Promise<void> => new Promise((resolve) => void clock.after(delayMs, resolve));

/** Between half of it and all of it: two losers of one race do not meet again. */
export const jittered = (system: Pick<System, 'random'>, delayMs: number): number => delayMs * (0.5 + system.random() / 2);

/**
 * The work, or an error once the time is over; the work itself goes on and its outcome stays unknown.
 * @throws the code given
 */
export function within<T>(
  clock: Clock,
  timeoutMs: number,
  code: 'STORE_UNAVAILABLE' | 'SERVICE_UNAVAILABLE',
  what: string,
  work: Promise<T>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = clock.after(timeoutMs, () =>
      reject(new ToolkitError(code, `${what} gave no answer within ${Math.round(timeoutMs)} ms`)),
    );
    work.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}
