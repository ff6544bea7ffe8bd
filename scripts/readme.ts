import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { faultKinds } from '../src/emulator/faults.ts';
import { dedupOptions, versionedOptions } from '../src/shared/dedup/options.ts';
import { delayOptions } from '../src/shared/delay/options.ts';
import { fifoOptions } from '../src/shared/fifo/options.ts';
import { metrics } from '../src/shared/metrics.ts';
import type { OptionTable } from '../src/shared/options.ts';
import { outboxOptions } from '../src/shared/outbox/options.ts';
import { pullOptions } from '../src/shared/transports/pull-options.ts';
import { writeTerraform } from './terraform-readme.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const tables: readonly OptionTable[] = [dedupOptions, versionedOptions, pullOptions, fifoOptions, outboxOptions, delayOptions];

const optionRow = ([name, { env, about, default: value, min, max }]: [string, OptionTable[string]]): string =>
  `| \`${env}\` | \`${name}\`: ${about} Default ${value}, from ${min} to ${max}. |`;

/** README.md with the examples as they stand in their files, the options as they stand in their tables, and the faults. */
export function renderReadme(text: string): string {
  return text
    .replace(/<!-- example: (\S+) -->\n(?:\n```ts\n[\s\S]*?```\n)?/g, (_, file) => {
      const code = readFileSync(root + file, 'utf8').trimEnd();
      return `<!-- example: ${file} -->\n\n\`\`\`ts\n${code}\n\`\`\`\n`;
    })
    .replace(/(?:\| `[A-Z_]+` \| `\w+`: .*\|\n)*<!-- options -->/, () => {
      const rows = tables.flatMap((table) => Object.entries(table).map(optionRow));
      return `${rows.join('\n')}\n<!-- options -->`;
    })
    .replace(/(?:\| `ptk\.[a-z_.]+` \| .*\|\n)*<!-- metrics -->/, () => {
      const rows = Object.entries(metrics).map(([name, { about }]) => `| \`${name}\` | ${about} |`);
      return `${rows.join('\n')}\n<!-- metrics -->`;
    })
    .replace(/(?:\| `[a-z-]+` \| .*\|\n)*<!-- faults -->/, () => {
      const rows = Object.entries(faultKinds).map(([kind, meaning]) => `| \`${kind}\` | ${meaning} |`);
      return `${rows.join('\n')}\n<!-- faults -->`;
    });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(`${root}README.md`, renderReadme(readFileSync(`${root}README.md`, 'utf8')));
  await writeTerraform();
}
