import { dedupOptions } from '../src/shared/dedup/options.ts';
import { delayOptions } from '../src/shared/delay/options.ts';
import { fifoOptions } from '../src/shared/fifo/options.ts';
import type { OptionTable } from '../src/shared/options.ts';
import { outboxOptions } from '../src/shared/outbox/options.ts';
import { settings } from '../src/shell/settings.ts';

/** What a variable may hold, as `terraform/rules.tf` reads it; any text where nothing is said. */
type Allowed =
  | { readonly one_of: readonly string[] }
  | { readonly range: readonly [number, number] }
  | { readonly pattern: string }
  | object;

/** Texts that a deployable reads and that no resource follows from, so that a user may set them. */
const texts = {
  dedup: /^(CONSUMER|SUBSCRIPTION|LOG_LEVEL|DEDUP_\w+)$/,
  fifo: /^(CONSUMER|SUBSCRIPTION|LOG_LEVEL|DEDUP_\w+|FIFO_\w+)$/,
  delay: /^(DELAY_LEDGER|LOG_LEVEL)$/,
  release: /^LOG_LEVEL$/,
} as const;

export type Configured = keyof typeof texts;

const numbers: Readonly<Record<Configured, readonly OptionTable[]>> = {
  dedup: [dedupOptions],
  fifo: [fifoOptions, dedupOptions, outboxOptions],
  delay: [delayOptions],
  release: [delayOptions],
};

/** Follow from other variables of Terraform. */
const computed = new Set(['DEDUP_TTL_SECONDS']);

/** For each deployable the names that `var.settings` may hold, and what each may be. */
export function allowedSettings(): Readonly<Record<Configured, Readonly<Record<string, Allowed>>>> {
  const of = (deployable: Configured) => {
    const named = Object.entries(settings)
      .filter(([name]) => texts[deployable].test(name))
      .map(([name, setting]): [string, Allowed] => [
        name,
        {
          ...('oneOf' in setting && { one_of: setting.oneOf }),
          ...('pattern' in setting && { pattern: setting.pattern.source.replaceAll('\\/', '/') }),
        },
      ]);
    const ranged = numbers[deployable].flatMap((table) =>
      Object.values(table).map(({ env, min, max }): [string, Allowed] => [env, { range: [min, max] }]),
    );
    return Object.fromEntries([...named, ...ranged].filter(([name]) => !computed.has(name)));
  };
  return { dedup: of('dedup'), fifo: of('fifo'), delay: of('delay'), release: of('release') };
}

/** `terraform/settings.json`: one line for each name. */
export function renderSettings(): string {
  const line = ([name, allowed]: readonly [string, Allowed]) => {
    const members = Object.entries(allowed).map(([key, value]) => `${JSON.stringify(key)}: ${inLine(value)}`);
    return `    ${JSON.stringify(name)}: ${members.length > 0 ? `{ ${members.join(', ')} }` : '{}'}`;
  };
  const groups = Object.entries(allowedSettings()).map(
    ([deployable, names]) => `  ${JSON.stringify(deployable)}: {\n${Object.entries(names).map(line).join(',\n')}\n  }`,
  );
  return `{\n${groups.join(',\n')}\n}\n`;
}

const inLine = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map((element) => JSON.stringify(element)).join(', ')}]` : JSON.stringify(value);
