import { dedupOptions } from '../../../src/shared/dedup/options.ts';
import { delayOptions } from '../../../src/shared/delay/options.ts';
import { fifoOptions } from '../../../src/shared/fifo/options.ts';
import { type OptionTable, readOptions } from '../../../src/shared/options.ts';
import { outboxOptions } from '../../../src/shared/outbox/options.ts';
import { readSettings, settings } from '../../../src/shell/settings.ts';
import { type Deployable, deployedIn } from './deployables.ts';
import type { Rule } from './world.ts';

/** The numbers that each deployable reads. */
export const optionsOf: Readonly<Record<Deployable, readonly OptionTable[]>> = {
  dedup: [dedupOptions],
  fifo: [fifoOptions, dedupOptions, outboxOptions],
  delay: [delayOptions],
  appengine: [delayOptions],
};

const namesIn = (table: OptionTable): readonly string[] => Object.values(table).map(({ env }) => env);
/** Every name that some deployable reads. */
export const declaredNames: ReadonlySet<string> = new Set([...Object.keys(settings), ...Object.values(optionsOf).flat().flatMap(namesIn)]);

/** A secret has no value here; one of the right form stands for it. */
const standIns: Readonly<Record<string, string>> = { REDIS_URL: 'rediss://default:secret@10.0.0.1:6378' };

export const environmentRules: readonly Rule[] = [
  {
    name: 'every environment variable is a setting or an option of its deployable',
    findings: (world) =>
      deployedIn(world).flatMap(({ kind, address, environment, secrets }) => {
        const read = new Set([...Object.keys(settings), ...optionsOf[kind].flatMap(namesIn)]);
        return [...Object.keys(environment), ...secrets]
          .filter((name) => !read.has(name))
          .map((name) => `${address}: ${kind} reads no ${name}`);
      }),
  },
  {
    name: 'every deployable starts with its environment',
    findings: (world) =>
      deployedIn(world).flatMap(({ kind, address, environment, secrets }) => {
        const whole = { ...environment, ...Object.fromEntries(secrets.map((name) => [name, standIns[name] ?? 'secret'])) };
        const reason = refusalOf(() => {
          readSettings(kind, whole);
          for (const table of optionsOf[kind]) readOptions(table, {}, whole);
        });
        return reason === undefined ? [] : [`${address}: ${reason}`];
      }),
  },
];

function refusalOf(read: () => void): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
