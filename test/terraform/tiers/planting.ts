import { type Planted, trees } from '../trees.ts';
import { copyOf } from '../workspace.ts';
import { tierA } from './tier-a.ts';
import { findingsOf } from './tier-b.ts';

type Tree = Planted['tree'];

/** Looks at trees with and without faults; what a tree says without one is asked for once. */
export function createPlanting(binary: string | undefined) {
  const sound = new Map<string, Promise<readonly string[]>>();
  const look = async (tree: Tree, tier: Planted['tier'], edits: Planted['edits']): Promise<readonly string[]> => {
    const workspace = copyOf(trees[tree].root, edits);
    try {
      if (tier === 'A') return (await tierA(workspace.root)).flatMap(({ findings }) => findings);
      if (binary === undefined) throw new Error('tier B needs Terraform');
      return await findingsOf(binary, workspace.root, trees[tree].deployed);
    } finally {
      workspace.remove();
    }
  };
  return {
    /**
     * Nothing where the fault is found by the finding that it says; else why that does not hold.
     * @throws Error where an edit does not apply
     */
    async missed({ tree, tier, edits, says }: Planted): Promise<string | undefined> {
      const key = `${tier} ${tree}`;
      const before = sound.get(key) ?? look(tree, tier, []);
      sound.set(key, before);
      const found = await look(tree, tier, edits);
      if (!found.some((finding) => says.test(finding)))
        return `no finding says ${says}; there are: ${found.join(' | ').slice(0, 1_000) || 'none'}`;
      return (await before).some((finding) => says.test(finding)) ? `a finding says ${says} without the fault` : undefined;
    },
  };
}
