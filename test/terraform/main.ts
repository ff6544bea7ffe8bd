import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { plantedFaults } from './planted.ts';
import { findTerraform } from './terraform.ts';
import { type Check, failed } from './tiers/check.ts';
import { createPlanting } from './tiers/planting.ts';
import { tierA } from './tiers/tier-a.ts';
import { tierB, treeOfRepository } from './tiers/tier-b.ts';
import { tierC } from './tiers/tier-c.ts';

/** `npm run test:terraform`: every tier that this machine can run, and the planted faults of these. */
const terraform = findTerraform();
const built = existsSync(join(import.meta.dirname, '..', '..', 'dist', 'deploy', 'functions', 'index.mjs'));
const checks: Check[] = [];
const print = (of: readonly Check[], tier: string) => {
  checks.push(...of);
  console.log(`tier ${tier}: ${of.length} checks, ${failed(of).length} failed`);
  for (const { name, findings } of failed(of))
    console.log(`  ${name}\n${findings.map((finding) => `    ${finding.replaceAll('\n', '\n    ')}`).join('\n')}`);
};

print(await tierA(treeOfRepository), 'A');

const b = terraform ? await tierB(terraform, treeOfRepository) : undefined;
if (b) print(b.checks, 'B');
else console.log('tier B did not run: there is no terraform on PATH');

const c = terraform && built ? await tierC(terraform, treeOfRepository) : undefined;
if (c) print(c.checks, 'C');
else console.log(`tier C did not run: ${terraform ? 'there is no dist/deploy; npm run build makes it' : 'there is no terraform on PATH'}`);

const { missed } = createPlanting(terraform);
const planted = plantedFaults.filter(({ tier }) => tier === 'A' || terraform !== undefined);
let caught = 0;
for (const fault of planted) {
  const reason = await missed(fault).catch((error: unknown) => (error instanceof Error ? error.message : String(error)));
  if (reason === undefined) caught += 1;
  else console.log(`planted, and not found by tier ${fault.tier}: ${fault.kind}\n    ${reason}`);
}
console.log(
  `planted faults: ${caught} of ${planted.length} found${planted.length < plantedFaults.length ? `; ${plantedFaults.length - planted.length} need terraform` : ''}`,
);

const ofTier = (tier: string) => checks.filter((check) => check.tier === tier).length;
const failures = failed(checks).length;
console.log(
  JSON.stringify({
    terraform: {
      tierA: ofTier('A'),
      tierB: ofTier('B'),
      tierC: ofTier('C'),
      failed: failures,
      planted: planted.length,
      caught,
      applied: (b?.applied ?? 0) + (c?.applied ?? 0),
      secondPlanChanges: (b?.secondPlanChanges ?? 0) + (c?.secondPlanChanges ?? 0),
      leftAfterDestroy: (b?.leftAfterDestroy ?? 0) + (c?.leftAfterDestroy ?? 0),
      messagesThrough: c?.messagesThrough ?? 0,
    },
  }),
);
process.exit(failures > 0 || caught < planted.length ? 1 : 0);
