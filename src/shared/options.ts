import { ToolkitError } from './errors.ts';

/** The only place where a default, a range, an environment name and a sentence of an option are written. */
export type OptionTable = Readonly<Record<string, NumberOption>>;
export type NumberOption = {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  readonly env: string;
  readonly about: string;
};

export type Options<Table extends OptionTable> = { readonly [Name in keyof Table]: number };

/**
 * Explicit value, else environment, else default.
 * @throws INVALID_SETTINGS naming the option, its value and its range
 */
export function readOptions<Table extends OptionTable>(
  table: Table,
  explicit: Partial<Options<Table>> = {},
  environment: Readonly<Record<string, string | undefined>> = {},
): Options<Table> {
  const values: Record<string, number> = {};
  for (const [name, option] of Object.entries(table)) {
    const text = environment[option.env];
    const [source, value] =
      explicit[name] !== undefined ? [name, explicit[name]] : text !== undefined ? [option.env, wholeNumber(text)] : [name, option.default];
    if (!Number.isInteger(value) || value < option.min || value > option.max) {
      const shown = explicit[name] ?? JSON.stringify(text);
      throw new ToolkitError('INVALID_SETTINGS', `${source} is ${shown}; it must be a whole number from ${option.min} to ${option.max}`);
    }
    values[name] = value;
  }
  for (const name of Object.keys(explicit)) {
    if (!Object.hasOwn(table, name))
      throw new ToolkitError('INVALID_SETTINGS', `there is no option ${name}; there are ${Object.keys(table).join(', ')}`);
  }
  return values as Options<Table>;
}

const wholeNumber = (text: string): number => (/^\d{1,15}$/.test(text) ? Number(text) : Number.NaN);
