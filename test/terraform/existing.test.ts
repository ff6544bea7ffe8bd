import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectId } from './cases.ts';
import type { Resource } from './provider/cloud.ts';
import { startProvider } from './provider/server.ts';
import { needTerraform } from './terraform-needed.ts';
import { type Deployment, deploymentOf } from './tiers/deployment.ts';
import { treeOfRepository } from './tiers/tier-b.ts';
import { copyOf } from './workspace.ts';

/** What a project may hold before the first apply, under the names that ours would have. */
const held = {
  database: {
    type: 'google_firestore_database',
    values: { project: projectId, name: 'pubsub-toolkit', location_id: 'europe-west1', type: 'FIRESTORE_NATIVE' },
  },
  application: { type: 'google_app_engine_application', values: { project: projectId, location_id: 'europe-west' } },
  topic: { type: 'google_pubsub_topic', values: { project: projectId, name: 'ptk-final' } },
  subscription: {
    type: 'google_pubsub_subscription',
    values: { project: projectId, name: 'ptk-dedup', topic: `projects/${projectId}/topics/ptk-final`, ack_deadline_seconds: 10 },
  },
} as const satisfies Readonly<Record<string, Resource>>;

type Variables = Readonly<Record<string, unknown>>;
type Deploy = {
  readonly root: string;
  /** The same project and state, with other variables. */
  readonly withVariables: (variables: Variables) => Deployment;
};

async function inProject(existing: readonly Resource[], look: (deploy: Deploy) => Promise<void>): Promise<void> {
  const binary = needTerraform();
  const workspace = copyOf(treeOfRepository);
  const provider = await startProvider({ existing });
  const withVariables = (variables: Variables) => {
    const deployed = { name: 'existing', folder: '.', variables: { project_id: projectId, ...variables } };
    return deploymentOf(binary, workspace.root, deployed, provider);
  };
  try {
    expect(await withVariables({}).init()).toEqual([]);
    await look({ root: workspace.root, withVariables });
  } finally {
    await provider.close();
    workspace.remove();
  }
}

/** The blocks of a guide that adopt something. */
const importsIn = (guide: string) => readFileSync(join(treeOfRepository, '..', guide), 'utf8').match(/^import \{\n[^}]*\n\}$/gm) ?? [];

test('a database that exists is told of by apply, and is used with create = false', async () => {
  await inProject([held.database], async ({ withVariables }) => {
    const refused = await withVariables({}).apply();
    expect(refused).toHaveLength(1);
    expect(refused[0]).toContain('409: projects/my-project-1/databases/pubsub-toolkit already exists');
    const reusing = withVariables({ firestore: { create: false } });
    expect(await reusing.apply()).toEqual([]);
    expect(await reusing.changes()).toEqual([]);
  });
});

test('what exists is adopted with the import blocks of the guide, and then changed like anything else', async () => {
  const imports = importsIn('docs/deploy.md');
  expect(imports).toHaveLength(Object.keys(held).length);
  await inProject(Object.values(held), async ({ root, withVariables }) => {
    writeFileSync(join(root, 'imports.tf'), imports.join('\n\n'));
    const features = { features: { delay: true } };
    const adopting = withVariables(features);
    expect(await adopting.apply()).toEqual([]);
    expect(await adopting.changes()).toEqual([]);
    const ending = withVariables({ ...features, labels: { team: 'orders' }, firestore: { delete_on_destroy: true } });
    expect(await ending.apply()).toEqual([]);
    expect(await ending.destroy()).toEqual([]);
    expect(await ending.leftovers()).toEqual([]);
  });
});

test('what a destroy leaves is deployed to again as the README says', async () => {
  await inProject([], async ({ withVariables }) => {
    const features = { features: { dedup: true, fifo: true, delay: true } };
    const first = withVariables(features);
    expect(await first.apply()).toEqual([]);
    expect(await first.destroy()).toEqual([]);
    const refused = (await first.apply()).map((error) => /409: .* already exists/.exec(error)?.[0]).sort();
    expect(refused).toEqual(['409: my-project-1 already exists', '409: projects/my-project-1/databases/pubsub-toolkit already exists']);
    // A queue waits for the application, so its own refusal needs one that exists.
    const without = {
      ...features,
      firestore: { create: false },
      app_engine: { create: false, location: 'europe-west1', service: 'default' },
    };
    expect((await withVariables(without).apply()).join('\n')).toMatch(/400: a queue of the name \S+ was deleted a short while ago/);
    const again = withVariables({ ...without, queues: { generation: 2 } });
    expect(await again.apply()).toEqual([]);
    expect(await again.changes()).toEqual([]);
  });
});
