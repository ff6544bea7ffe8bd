import { join } from 'node:path';
import { everyFeatureCase, projectId } from '../cases.ts';
import { startStage } from '../hooks/stage.ts';
import { text } from '../provider/values.ts';
import { traffic } from '../traffic.ts';
import { copyOf } from '../workspace.ts';
import type { Check } from './check.ts';
import { deploymentOf } from './deployment.ts';

export type TierC = {
  readonly checks: readonly Check[];
  readonly applied: number;
  readonly secondPlanChanges: number;
  readonly leftAfterDestroy: number;
  readonly messagesThrough: number;
};

const check = (name: string, findings: readonly string[]): Check => ({ tier: 'C', name, findings });

/** The toolkit on what Terraform made of a tree: everything is applied into the emulators, messages go through, everything is destroyed. */
export async function tierC(binary: string, tree: string): Promise<TierC> {
  const workspace = copyOf(tree);
  const stage = await startStage({ projectId, indexesFile: join(tree, 'firestore.indexes.json') });
  try {
    const deployment = deploymentOf(binary, workspace.root, everyFeatureCase, stage.provider);
    const refused = [...(await deployment.init()), ...(await deployment.apply())];
    const applied = stage.cloud.all().length;
    const checks = [check('every feature is applied, and its deployables start', refused)];
    let messagesThrough = 0;
    let changes: readonly string[] = [];
    if (refused.length === 0) {
      const { outputs } = await deployment.state();
      changes = await deployment.changes();
      checks.push(
        check('what is there is what Terraform has', changes),
        await attempt('messages go through', async () => {
          messagesThrough = await traffic({ projectId, outputs, stage });
          return [];
        }),
        await attempt('every schedule is answered', async () => {
          const jobs = stage.cloud.all('google_cloud_scheduler_job').map(({ values }) => text(values.name));
          const answers = await Promise.all(jobs.map(async (job) => ({ job, ...(await stage.fire(job)) })));
          return answers
            .filter(({ status }) => status !== 200)
            .map(({ job, status, text: body }) => `${job} is answered ${status}: ${body.slice(0, 300)}`);
        }),
        check('every function takes its own calls', refusals(stage.fronts)),
      );
    }
    checks.push(check('destroy', await deployment.destroy()));
    const { pubsub } = stage.emulator;
    const real = [...pubsub.topics(), ...pubsub.subscriptions()].map(({ name }) => `${name} is in the emulator`);
    const left = [...(await deployment.leftovers()), ...real];
    checks.push(check('nothing is left', left));
    return { checks, applied, secondPlanChanges: changes.length, leftAfterDestroy: left.length, messagesThrough };
  } finally {
    await stage.close();
    workspace.remove();
  }
}

async function attempt(name: string, run: () => Promise<readonly string[]>): Promise<Check> {
  try {
    return check(name, await run());
  } catch (error) {
    return check(name, [error instanceof Error ? error.message : String(error)]);
  }
}

const refusals = (fronts: ReadonlyMap<string, { readonly counts: ReadonlyMap<string, number> }>): readonly string[] =>
  [...fronts].flatMap(([name, { counts }]) =>
    [...counts].filter(([reason]) => reason !== 'passed').map(([reason, times]) => `${name} refused ${times} requests: ${reason}`),
  );
