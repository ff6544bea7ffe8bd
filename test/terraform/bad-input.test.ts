import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectId } from './cases.ts';
import { type Provider, startProvider } from './provider/server.ts';
import { needTerraform, terraform } from './terraform-needed.ts';
import { deploymentOf } from './tiers/deployment.ts';
import { treeOfRepository } from './tiers/tier-b.ts';
import { copyOf, type Workspace } from './workspace.ts';

let provider: Provider;
let workspace: Workspace;
const withVariables = (variables: Readonly<Record<string, unknown>>) => {
  const deployed = { name: 'bad input', folder: '.', variables: { project_id: projectId, ...variables } };
  return deploymentOf(needTerraform(), workspace.root, deployed, provider);
};
beforeAll(async () => {
  provider = await startProvider();
  workspace = copyOf(treeOfRepository);
  if (terraform) await withVariables({}).init();
});
afterAll(async () => {
  await provider.close();
  workspace.remove();
});

const delay = { features: { delay: true } };

test.each([
  {
    what: 'a variable out of its range',
    variables: { subscription: { ack_deadline_seconds: 601 } },
    says: 'subscription.ack_deadline_seconds must lie between 10 and 600.',
  },
  {
    what: 'a missing archive',
    variables: { source_archives: { functions: './nowhere/functions.zip' } },
    says: 'source_archives.functions: there is no file ./nowhere/functions.zip. Run npm run build, which makes it in dist/deploy, or name another .zip file in source_archives.',
  },
  {
    what: 'a missing archive of App Engine',
    variables: { ...delay, source_archives: { appengine: './nowhere/appengine.zip' } },
    says: 'source_archives.appengine: there is no file ./nowhere/appengine.zip.',
  },
  { what: 'an unsupported runtime', variables: { runtime: 'nodejs23' }, says: 'runtime must be nodejs24 or a later one.' },
  {
    what: 'queues in another region than App Engine',
    variables: { ...delay, queues: { region: 'europe-west3' } },
    says: 'queues.region is europe-west3 and App Engine in europe-west1: a queue whose tasks call App Engine must be in its region. Set queues.region to europe-west1, or leave it out.',
  },
  {
    what: 'the database that every project may have already',
    variables: { firestore: { name: '(default)' } },
    says: 'firestore.name is (default), which exists or is made by App Engine: set firestore.create = false to use it, or another firestore.name.',
  },
  {
    what: 'a prefix that is too long',
    variables: { name_prefix: 'abcdefghijklmnop' },
    says: 'name_prefix must have 1-15 lower-case letters, digits and hyphens, start with a letter (not with goog) and not end with a hyphen',
  },
  {
    what: 'a setting out of its range',
    variables: { settings: { fifo: { FIFO_HOLD_MS: '30001' } } },
    says: 'settings.fifo.FIFO_HOLD_MS is "30001"; it must be a whole number from 0 to 30000.',
  },
])('$what is an error of the plan that says what may be', async ({ variables, says }) => {
  const errors = (await withVariables(variables).plan()).map((error) => error.replaceAll(/\s+/g, ' '));
  expect(errors).toEqual([expect.stringContaining(says)]);
});
