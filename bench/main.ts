import { readdirSync } from 'node:fs';
import type { Benchmark } from './measure/figures.ts';

/** `npm run bench -- NAME [options]`: one file here a benchmark, its parts in the folder of its name. */
const [name = '', ...args] = process.argv.slice(2);
const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && file !== 'main.ts')
  .map((file) => file.slice(0, -'.ts'.length));

// No metadata server answers here, and each process would ask for one as it starts.
process.env.METADATA_SERVER_DETECTION ??= 'none';

if (names.includes(name)) {
  try {
    const { benchmark }: { benchmark: Benchmark } = await import(`./${name}.ts`);
    const figures = await benchmark(args);
    if (figures) console.log(JSON.stringify({ bench: name, figures }));
    process.exit(0);
  } catch (error) {
    console.error(`bench ${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
} else {
  console.error(`There is no benchmark "${name}"; there are: ${names.join(', ')}.`);
  process.exit(1);
}
