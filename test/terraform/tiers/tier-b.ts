import { join } from 'node:path';
import { type Case, casesOf } from '../cases.ts';
import { startProvider } from '../provider/server.ts';
import { rules } from '../rules/all.ts';
import { worldOf } from '../rules/world.ts';
import { terraformIn } from '../terraform.ts';
import { copyOf } from '../workspace.ts';
import type { Check } from './check.ts';
import { deploymentOf } from './deployment.ts';

export type TierB = {
  readonly checks: readonly Check[];
  readonly applied: number;
  readonly secondPlanChanges: number;
  readonly leftAfterDestroy: number;
};

const check = (name: string, findings: readonly string[]): Check => ({ tier: 'B', name, findings });

/** Real Terraform on every case of a tree: format, its own tests, and each case applied, planned again and destroyed. */
export async function tierB(binary: string, tree: string, cases: readonly Case[] = casesOf(tree)): Promise<TierB> {
  const checks: Check[] = [...(await formatAndTests(binary, tree))];
  let applied = 0;
  let secondPlanChanges = 0;
  let leftAfterDestroy = 0;
  for (const one of cases) {
    const lived = await live(binary, tree, one);
    checks.push(...lived.checks);
    applied += lived.applied;
    secondPlanChanges += lived.secondPlanChanges;
    leftAfterDestroy += lived.leftAfterDestroy;
  }
  return { checks, applied, secondPlanChanges, leftAfterDestroy };
}

async function formatAndTests(binary: string, tree: string): Promise<readonly Check[]> {
  const workspace = copyOf(tree);
  const provider = await startProvider();
  try {
    const terraform = terraformIn(binary, workspace.root, provider.env);
    const format = await terraform.run('fmt', '-check', '-recursive', '-no-color');
    await terraform.run('init', '-no-color');
    const tests = await terraform.run('test', '-no-color');
    const [, passed = '0', failures = '1'] = /(\d+) passed, (\d+) failed/.exec(tests.stdout) ?? [];
    const findings = tests.code === 0 && failures === '0' ? [] : [(tests.stderr + tests.stdout).slice(0, 3_000)];
    return [
      check('every file is formatted', (format.stdout + format.stderr).split('\n').filter(Boolean)),
      check(`terraform test: ${passed} passed`, findings),
    ];
  } finally {
    await provider.close();
    workspace.remove();
  }
}

/** One case from its first plan to its end. What does not apply is not planned again, but destroyed. */
async function live(binary: string, tree: string, one: Case): Promise<TierB> {
  const workspace = copyOf(tree);
  const provider = await startProvider({ existing: one.existing ?? [] });
  try {
    const deployment = deploymentOf(binary, workspace.root, one, provider);
    const checks = [check(`${one.name}: init`, await deployment.init()), check(`${one.name}: validate`, await deployment.validate())];
    const refused = await deployment.apply();
    const applied = provider.cloud.all().length;
    checks.push(check(`${one.name}: apply`, refused));
    let changes: readonly string[] = [];
    if (refused.length === 0) {
      const world = worldOf(await deployment.state());
      checks.push(...rules.map(({ name, findings }) => check(`${one.name}: ${name}`, findings(world))));
      changes = await deployment.changes();
      checks.push(check(`${one.name}: a second plan changes nothing`, changes));
    }
    checks.push(check(`${one.name}: destroy`, await deployment.destroy()));
    const left = await deployment.leftovers();
    checks.push(check(`${one.name}: nothing is left`, left));
    return { checks, applied, secondPlanChanges: changes.length, leftAfterDestroy: left.length };
  } finally {
    await provider.close();
    workspace.remove();
  }
}

/** What applying a tree tells that it should not: errors, broken rules, changes of a second plan. */
export async function findingsOf(binary: string, root: string, one: Case): Promise<readonly string[]> {
  const provider = await startProvider({ existing: one.existing ?? [] });
  try {
    const deployment = deploymentOf(binary, root, one, provider);
    const refused = [...(await deployment.init()), ...(await deployment.apply())];
    if (refused.length > 0) return refused;
    const world = worldOf(await deployment.state());
    return [...rules.flatMap(({ findings }) => findings(world)), ...(await deployment.changes())];
  } finally {
    await provider.close();
  }
}

export const treeOfRepository = join(import.meta.dirname, '..', '..', '..', 'terraform');
