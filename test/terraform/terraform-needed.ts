import { endNotRun } from '../support/not-run.ts';
import { findTerraform } from './terraform.ts';

export const terraform = findTerraform();

/** The binary; without one the test that asks for it ends here and counts as not run. */
export const needTerraform = (): string => terraform ?? endNotRun('there is no terraform on PATH');
