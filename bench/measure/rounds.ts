import { median } from './figures.ts';

/** Runs `once` in so many lanes side by side until the time is over; how many a second were done. */
export async function ratePerSecond(lanes: number, durationMs: number, once: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  let done = 0;
  const lane = async () => {
    while (performance.now() - startMs < durationMs) {
      await once();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return (done * 1_000) / (performance.now() - startMs);
}

export type Sides = { readonly ours: () => Promise<number>; readonly official?: (() => Promise<number>) | undefined };
export type Compared = { readonly ours: number; readonly ratio: number | null };

/**
 * Measures both sides in turn, so that a noisy moment hits both: one round to warm up, which counts for nothing, then the repeats.
 *
 * @returns our median, and the median of the repeats' ratios
 */
export async function sideBySide(name: string, repeats: number, { ours, official }: Sides): Promise<Compared> {
  await ours();
  await official?.();
  const values: number[] = [];
  const ratios: number[] = [];
  for (let repeat = 1; repeat <= repeats; repeat++) {
    const value = await ours();
    const other = await official?.();
    values.push(value);
    if (other !== undefined) ratios.push(value / other);
    console.log(`${name} ${repeat}/${repeats}: ours ${value.toFixed(1)}${other === undefined ? '' : `, official ${other.toFixed(1)}`}`);
  }
  return { ours: median(values), ratio: official ? median(ratios) : null };
}
