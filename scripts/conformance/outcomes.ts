import type { TestCase } from 'vitest/node';

/** How one test of a statement ended. */
export type Outcome = {
  readonly number: number;
  readonly title: string;
  readonly target: 'embedded' | 'google';
  /** What Google's emulator is expected to do instead; then `passed` says that it did. */
  readonly differs: string | undefined;
  readonly passed: boolean;
};

export function outcomeOf(test: TestCase): Outcome | undefined {
  const number = /^G(\d+): /.exec(test.name)?.[1];
  if (number === undefined) return undefined;
  const { target = 'embedded', differs } = test.meta();
  return { number: Number(number), title: test.fullName, target, differs, passed: test.result().state === 'passed' };
}

/** The embedded emulator's result for one statement, from the outcomes of its tests. */
export function embeddedResult(outcomes: readonly Outcome[]): 'pass' | 'fail' | 'missing' {
  const own = outcomes.filter(({ target }) => target === 'embedded');
  if (own.length === 0) return 'missing';
  return own.every(({ passed }) => passed) ? 'pass' : 'fail';
}

/** Google's emulator's result: the worst counts. */
export function googleResult(outcomes: readonly Outcome[]): 'pass' | 'differs' | 'no longer differs' | 'fail' | 'not applicable' {
  const own = outcomes.filter(({ target }) => target === 'google');
  if (own.some(({ differs, passed }) => differs === undefined && !passed)) return 'fail';
  if (own.some(({ differs, passed }) => differs !== undefined && !passed)) return 'no longer differs';
  if (own.some(({ differs }) => differs !== undefined)) return 'differs';
  return own.length > 0 ? 'pass' : 'not applicable';
}
