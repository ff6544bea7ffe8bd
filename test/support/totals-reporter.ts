import type { Reporter, TestCase, TestModule } from 'vitest/node';

/**
 * What `EMULATORS=official` put to Google's emulators: in the project `emulator` the tests of statements, in the others all. A statement
 * that was put to both counts once.
 */
function officialTotals(tests: readonly TestCase[]): string {
  const keyOf = ({ module, name }: TestCase) => `${module.moduleId} ${name}`;
  const targetOf = (test: TestCase) => test.meta().target ?? (test.project.name === 'emulator' ? 'embedded' : 'google');
  const asked = new Set(tests.filter((test) => targetOf(test) === 'google').map(keyOf));
  const own = tests.filter((test) => targetOf(test) === 'google' || (test.meta().target && !asked.has(keyOf(test))));
  const notRun = own.flatMap((test) => {
    const result = test.result();
    return result.state === 'skipped' ? [result.note ?? 'of another kind'] : [];
  });
  const reasons = [...new Set(notRun)].map((reason) => `${notRun.filter((other) => other === reason).length} ${reason}`);
  const count = (state: string) => own.filter((test) => test.result().state === state).length;
  return `On Google's emulators: ${count('passed')} passed, ${count('failed')} failed, ${notRun.length} not run (${reasons.join(', ')})`;
}

/** The last line of a run: `N passed, N failed, N skipped`, counted from the results themselves. */
export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const totals = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) {
      // A file that could not be loaded has no tests and would not count.
      if (module.state() === 'failed' && [...module.children.allTests()].every((test) => test.result().state !== 'failed'))
        totals.failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed' || state === 'failed') totals[state] += 1;
        else totals.skipped += 1;
      }
    }
    if (process.env.EMULATORS === 'official') console.log(officialTotals(modules.flatMap((module) => [...module.children.allTests()])));
    console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
  }
}
