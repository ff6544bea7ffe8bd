import type { Reporter, TestCase, TestModule } from 'vitest/node';

/** Why tests did not run, and how many for each reason; empty where all ran. */
function reasonsOf(tests: readonly TestCase[]): string {
  const reasons = new Map<string, number>();
  for (const test of tests) {
    const result = test.result();
    if (result.state !== 'skipped') continue;
    const reason = result.note ?? 'without a reason';
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return [...reasons].map(([reason, count]) => `${count} ${reason}`).join(', ');
}

const countOf = (tests: readonly TestCase[], state: string) => tests.filter((test) => test.result().state === state).length;

/**
 * What `EMULATORS=official` put to Google's emulators: in the project `emulator` the tests of statements, in the others all. A statement
 * that was put to both counts once.
 */
function officialTotals(tests: readonly TestCase[]): string {
  const keyOf = ({ module, name }: TestCase) => `${module.moduleId} ${name}`;
  const targetOf = (test: TestCase) => test.meta().target ?? (test.project.name === 'emulator' ? 'embedded' : 'google');
  const asked = new Set(tests.filter((test) => targetOf(test) === 'google').map(keyOf));
  const own = tests.filter((test) => targetOf(test) === 'google' || (test.meta().target && !asked.has(keyOf(test))));
  const totals = `${countOf(own, 'passed')} passed, ${countOf(own, 'failed')} failed, ${countOf(own, 'skipped')} not run`;
  return `On Google's emulators: ${totals} (${reasonsOf(own)})`;
}

/** The last line of a run: `N passed, N failed, N skipped`, counted from the results themselves. */
export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    // A file that could not be loaded has no tests and would not count.
    const unloaded = modules.filter((module) => module.state() === 'failed' && countOf([...module.children.allTests()], 'failed') === 0);
    const [passed, failed] = [countOf(tests, 'passed'), countOf(tests, 'failed') + errors.length + unloaded.length];
    const skipped = tests.length - passed - countOf(tests, 'failed');
    if (process.env.EMULATORS === 'official') console.log(officialTotals(tests));
    else if (skipped > 0) console.log(`Not run: ${reasonsOf(tests)}`);
    console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  }
}
