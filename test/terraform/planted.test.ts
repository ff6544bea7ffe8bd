import { describe, expect, test } from 'vitest';
import { plantedFaults } from './planted.ts';
import { needTerraform, terraform } from './terraform-needed.ts';
import { failed } from './tiers/check.ts';
import { createPlanting } from './tiers/planting.ts';
import { tierA } from './tiers/tier-a.ts';
import { trees } from './trees.ts';
import { copyOf } from './workspace.ts';

const { missed } = createPlanting(terraform);

test.each(Object.keys(trees) as (keyof typeof trees)[])('tier A has nothing to say about the tree %s', async (name) => {
  expect(failed(await tierA(trees[name].root))).toEqual([]);
});

describe('planted faults', () => {
  test('are of ten kinds and more, and each can be planted', () => {
    expect(new Set(plantedFaults.map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(10);
    for (const { tree, edits } of plantedFaults) copyOf(trees[tree].root, edits).remove();
  });

  test('must be planted where they are said to be', () => {
    expect(() => copyOf(trees.fifo.root, [{ file: 'main.tf', from: 'no such text', to: '' }])).toThrow(
      'main.tf does not hold "no such text"',
    );
  });

  test.each(plantedFaults.filter(({ tier }) => tier === 'A'))('$kind is found without Terraform', async (fault) => {
    expect(await missed(fault)).toBeUndefined();
  });

  // The others are for `npm run test:terraform`: they take a while.
  test.each(plantedFaults.filter(({ kind }) => kind === 'nobody sweeps'))('$kind is found with Terraform', async (fault) => {
    needTerraform();
    expect(await missed(fault)).toBeUndefined();
  });

  test('that are not found are told of', async () => {
    const harmless = { kind: 'none', tree: 'fifo', tier: 'A', edits: [], says: /nothing/ } as const;
    expect(await missed(harmless)).toMatch(/^no finding says/);
  });
});
