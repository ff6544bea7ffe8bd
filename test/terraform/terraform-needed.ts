import { TestRunner } from 'vitest';
import { findTerraform } from './terraform.ts';

export const terraform = findTerraform();

/** The binary; without one the test that asks for it ends here and counts as not run. */
export function needTerraform(): string {
  if (terraform) return terraform;
  const test = TestRunner.getCurrentTest();
  if (!test) throw new Error('there is no terraform on PATH');
  return test.context.skip('there is no terraform on PATH');
}
