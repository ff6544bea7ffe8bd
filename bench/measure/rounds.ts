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

export type Passes<Item> = {
  readonly lanes: number;
  readonly items: readonly Item[];
  /** Before each pass, off the clock. */
  readonly before?: () => Promise<unknown>;
  readonly once: (item: Item) => Promise<unknown>;
  /** Passes that begin earlier do not count: what the load leaves behind for later is felt only after a while. */
  readonly settleMs: number;
  readonly measuredMs: number;
};

/** Runs `once` on every item, again and again; how many a second were done. */
export async function passesPerSecond<Item>({ lanes, items, before, once, settleMs, measuredMs }: Passes<Item>): Promise<number> {
  const startMs = performance.now();
  let counted = 0;
  let countedMs = 0;
  while (countedMs < measuredMs) {
    await before?.();
    const beganMs = performance.now();
    const left = items.values();
    const lane = async () => {
      for (const item of left) await once(item);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    if (beganMs - startMs < settleMs) continue;
    counted += items.length;
    countedMs += performance.now() - beganMs;
  }
  return (counted * 1_000) / countedMs;
}

export type Measure = () => Promise<number>;

/**
 * Measures all sides in turn, so that a noisy moment hits all: one round to warm up, which counts for nothing, then the repeats.
 *
 * @returns what each side measured, repeat by repeat
 */
export async function inTurn<Side extends string>(
  name: string,
  repeats: number,
  sides: Readonly<Record<Side, Measure>>,
): Promise<Readonly<Record<Side, readonly number[]>>> {
  const entries = Object.entries<Measure>(sides);
  const measured = Object.fromEntries(entries.map(([side]) => [side, [] as number[]]));
  for (const [, measure] of entries) await measure();
  for (let repeat = 1; repeat <= repeats; repeat++) {
    const shown: string[] = [];
    for (const [side, measure] of entries) {
      const value = await measure();
      measured[side]?.push(value);
      shown.push(`${side} ${value.toFixed(1)}`);
    }
    console.log(`${name} ${repeat}/${repeats}: ${shown.join(', ')}`);
  }
  return measured as Record<Side, number[]>;
}

/** The median of the repeats' ratios. */
export const medianRatio = (values: readonly number[], others: readonly number[]): number =>
  median(values.map((value, repeat) => value / (others[repeat] ?? Number.NaN)));

export type Sides = { readonly ours: Measure; readonly official?: Measure | undefined };
export type Compared = { readonly ours: number; readonly ratio: number | null };

/** @returns our median, and the median of the repeats' ratios */
export async function sideBySide(name: string, repeats: number, { ours, official }: Sides): Promise<Compared> {
  if (!official) return { ours: median((await inTurn(name, repeats, { ours })).ours), ratio: null };
  const measured = await inTurn(name, repeats, { ours, official });
  return { ours: median(measured.ours), ratio: medianRatio(measured.ours, measured.official) };
}
