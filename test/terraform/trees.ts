import { join } from 'node:path';
import { type Case, everyFeatureCase, handlerLessCase, projectId } from './cases.ts';
import type { Edit } from './workspace.ts';

/** A mistake that somebody could make, and the tier that must find it. */
export type Planted = {
  readonly kind: string;
  /** Where it is made: `terraform/`, or a deployment of the tests where `terraform/` has not yet what it needs. */
  readonly tree: keyof typeof trees;
  readonly edits: readonly Edit[];
  readonly tier: 'A' | 'B';
  /** What one finding says, and no finding of the tree without the fault. */
  readonly says: RegExp;
};

export const trees = {
  terraform: { root: join(import.meta.dirname, '..', '..', 'terraform'), deployed: everyFeatureCase },
  handlerLess: { root: join(import.meta.dirname, '..', '..', 'terraform'), deployed: handlerLessCase },
  fifo: {
    root: join(import.meta.dirname, 'fixtures', 'fifo'),
    deployed: { name: 'fifo', folder: '.', variables: { project_id: projectId } } as Case,
  },
} as const satisfies Record<string, { readonly root: string; readonly deployed: Case }>;
