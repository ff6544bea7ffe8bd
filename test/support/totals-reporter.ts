import type { Reporter, TestModule } from 'vitest/node';

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
    console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
  }
}
