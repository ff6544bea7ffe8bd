import { readdirSync } from 'node:fs';
import type { CrashTest } from './figures.ts';

/** `npm run test:crash -- NAME [--seed N] [--kills N]`: one file here a test with kills, its parts in the folder of its name. */
const [name = '', ...args] = process.argv.slice(2);
const names = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((folder) => folder.name);

if (names.includes(name)) {
  try {
    const { crashTest }: { crashTest: CrashTest } = await import(`./${name}.ts`);
    const { figures, controls } = await crashTest(args);
    console.log(JSON.stringify({ crash: name, figures }));
    process.exit(figures.lost === 0 && figures.undocumentedRepeats === 0 && figures.controlsCaught === controls ? 0 : 1);
  } catch (error) {
    console.error(`crash ${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
} else {
  console.error(`There is no crash test "${name}"; there are: ${names.join(', ')}.`);
  process.exit(1);
}
