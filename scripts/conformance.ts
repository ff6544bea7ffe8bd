import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startVitest } from 'vitest/node';
import { findGoogleEmulators } from '../src/cli/google-emulators.ts';
import { readNumberedTests } from './conformance/numbered-tests.ts';
import { embeddedResult, googleResult, type Outcome, outcomeOf } from './conformance/outcomes.ts';
import { readStatements, rewritten } from './conformance/statements.ts';
import { noteOf, type Row, readTable, renderTable } from './conformance/table.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const tablePath = `${root}src/emulator/CONFORMANCE.md`;

const tests = readNumberedTests();
const statements = readStatements(readFileSync(`${root}docs/facts.md`, 'utf8'));
const outcomes = await runTests();
const keptColumn = googleColumnKept();
const rows = [...statements].map(([number, statement]): Row => {
  const own = outcomes.filter((outcome) => outcome.number === number);
  const google = keptColumn ? (keptColumn.get(number) ?? 'not run') : googleResult(own);
  return { number, statement, embedded: embeddedResult(own), google, note: noteOf(number, tests.get(number)) };
});
writeFileSync(tablePath, renderTable(rows));
report(rows);

async function runTests(): Promise<readonly Outcome[]> {
  process.env.CONFORMANCE = '1';
  const files = new Set([...tests.values()].flatMap((numbered) => numbered.files));
  const vitest = await startVitest([...files], {
    root,
    watch: false,
    project: ['emulator', 'contract', 'e2e'],
    testNamePattern: /G\d+: /,
    reporters: ['default'],
  });
  const cases = vitest.state.getTestModules().flatMap((module) => [...module.children.allTests()]);
  const errors = vitest.state.getUnhandledErrors();
  await vitest.close();
  // An error outside of a test says that what was counted is not the whole; it is printed above.
  if (errors.length > 0) process.exit(1);
  return cases.flatMap((test) => outcomeOf(test) ?? []);
}

/** The column as the file holds it, where this machine cannot fill it. */
function googleColumnKept(): ReadonlyMap<number, string> | undefined {
  const missing = Object.values(findGoogleEmulators()).flatMap((found) => ('missing' in found ? found.missing : []));
  if (missing.length === 0) return undefined;
  console.log(`The column of Google's emulator is kept as it was: ${[...new Set(missing)].join(', ')}.`);
  const before = existsSync(tablePath) ? readTable(readFileSync(tablePath, 'utf8')) : [];
  return new Map(before.map(({ number, google }) => [number, google]));
}

function report(rows: readonly Row[]): void {
  console.log(
    rows
      .map(
        ({ number, embedded, google, statement }) =>
          `${String(number).padStart(3)}  ${embedded.padEnd(7)}  ${google.padEnd(17)}  ${statement}`,
      )
      .join('\n'),
  );
  for (const { title, target, differs, passed } of outcomes) {
    if (!passed) console.log(differs === undefined ? `failed on ${target}: ${title}` : `no longer differs on Google's emulator: ${title}`);
  }
  const passing = rows.filter(({ embedded }) => embedded === 'pass').map(({ number }) => number);
  const rewrittenCount = passing.filter((number) => number in rewritten).length;
  const fail = rows.length - passing.length;
  process.exitCode = fail > 0 || outcomes.some(({ passed }) => !passed) ? 1 : 0;
  console.log(
    JSON.stringify({ conformance: { statements: rows.length, pass: passing.length - rewrittenCount, rewritten: rewrittenCount, fail } }),
  );
}
