import { parseArgs } from 'node:util';

/** What a run measured; null where a figure's other side is not installed. */
export type Figures = Readonly<Record<string, number | null>>;

/** A benchmark prints what it measures while it runs; no figures where it was asked for something else, as a profile. */
export type Benchmark = (args: readonly string[]) => Promise<Figures | undefined>;

export type Target = { readonly atMost: number } | { readonly atLeast: number };

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** The value that this part of all stay at or below. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * part) - 1] ?? Number.NaN;
}

/** Two decimals below 100, whole numbers from there. */
function rounded(value: number): number {
  return value < 100 ? Math.round(value * 100) / 100 : Math.round(value);
}

/**
 * Runs the parts of these names, one after the other, and prints what they measured beside the targets.
 * @throws for a name that no part has
 */
export async function measureParts<Asked>(
  parts: Readonly<Record<string, (asked: Asked) => Promise<Figures>>>,
  names: readonly string[],
  asked: Asked,
  targets: Readonly<Record<string, Target>>,
): Promise<Figures> {
  const figures: Record<string, number | null> = {};
  for (const name of names) {
    const part = parts[name];
    if (!part) throw new Error(`there is no part "${name}"; there are: ${Object.keys(parts).join(', ')}`);
    Object.assign(figures, await part(asked));
  }
  const measured = Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, value === null ? null : rounded(value)]));
  printFigures(measured, targets);
  return measured;
}

/**
 * A benchmark of `--only PART`, `--repeats N` and `--profile`.
 * @param printProfiles instead of measuring: where the time goes
 */
export function benchmarkOf(
  parts: Readonly<Record<string, (repeats: number) => Promise<Figures>>>,
  targets: Readonly<Record<string, Target>>,
  printProfiles: () => Promise<void>,
): Benchmark {
  return async (args) => {
    const { values } = parseArgs({
      args: [...args],
      options: {
        only: { type: 'string', multiple: true, default: Object.keys(parts) },
        repeats: { type: 'string', default: '5' },
        profile: { type: 'boolean', default: false },
      },
    });
    if (values.profile) return void (await printProfiles());
    return measureParts(parts, values.only, Number(values.repeats), targets);
  };
}

function printFigures(figures: Figures, targets: Readonly<Record<string, Target>>): void {
  const rows = Object.entries(figures).map(([name, value]) => {
    const target = targets[name];
    return [name, value === null ? 'not run' : String(value), target ? wanted(target) : '', target ? verdict(value, target) : ''];
  });
  printTable([['figure', 'measured', 'target', ''], ...rows]);
}

const wanted = (target: Target) => ('atMost' in target ? `at most ${target.atMost}` : `at least ${target.atLeast}`);

function verdict(value: number | null, target: Target): string {
  if (value === null) return '';
  return ('atMost' in target ? value <= target.atMost : value >= target.atLeast) ? 'met' : 'SHORT';
}

export function printTable(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}
