import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { projectId } from '../cases.ts';
import { needTerraform } from '../terraform-needed.ts';
import { type Deployment, deploymentOf } from '../tiers/deployment.ts';
import { trees } from '../trees.ts';
import type { Hooks } from './hooks.ts';
import { type Provider, startProvider } from './server.ts';
import type { Values } from './values.ts';

let folder: string;
let provider: Provider;
let deployment: Deployment;
const calls: (readonly [string, string])[] = [];
let isThere = true;
const noted = (call: string) => async (values: Values) => {
  calls.push([call, String(values.name)]);
  return undefined;
};
const hooks: Hooks = {
  google_pubsub_topic: {
    create: noted('create'),
    update: noted('update'),
    delete: async (values) => void (await noted('delete')(values)),
    isThere: async ({ name }) => name !== 'ptk-orders' || isThere,
  },
};

beforeEach(async () => {
  const terraform = needTerraform();
  folder = mkdtempSync(join(tmpdir(), 'ptk-provider-'));
  cpSync(trees.fifo.root, folder, { recursive: true });
  calls.length = 0;
  isThere = true;
  provider = await startProvider({ hooks, existing: [{ type: 'google_pubsub_topic', values: { name: 'old', project: projectId } }] });
  deployment = deploymentOf(terraform, folder, trees.fifo.deployed, provider);
  expect(await deployment.init()).toEqual([]);
});
afterEach(async () => {
  await provider?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Changes the configuration. */
const edit = (from: string, to: string) => {
  const text = readFileSync(join(folder, 'main.tf'), 'utf8');
  expect(text).toContain(from);
  writeFileSync(
    join(folder, 'main.tf'),
    text.replace(from, () => to),
  );
};

describe('Terraform with the provider of the tests', () => {
  test('applies, sees nothing to change, updates in place, makes anew, and destroys', async () => {
    expect(await deployment.apply()).toEqual([]);
    expect(provider.cloud.all()).toHaveLength(25);
    expect(await deployment.changes()).toEqual([]);

    edit('owner = "ptk"', 'owner = "other"');
    expect(await deployment.changes()).toEqual(['google_pubsub_topic.main: update']);
    edit('enable_message_ordering    = false', 'enable_message_ordering    = true');
    expect(await deployment.changes()).toContain('google_pubsub_subscription.main: delete and create');
    expect(await deployment.apply()).toEqual([]);
    expect(await deployment.changes()).toEqual([]);

    expect(await deployment.destroy()).toEqual([]);
    expect(await deployment.leftovers()).toEqual([]);
    expect(calls.filter(([, name]) => name === 'ptk-orders').map(([call]) => call)).toEqual(['create', 'update', 'delete']);
  });

  test('makes again what is gone', async () => {
    await deployment.apply();
    isThere = false;
    expect(await deployment.changes()).toContain('google_pubsub_topic.main: create');
  });

  test('refuses before apply what the service would refuse', async () => {
    edit('ack_deadline_seconds  = 60', 'ack_deadline_seconds  = 601');
    expect(await deployment.apply()).toEqual([expect.stringContaining('ack_deadline_seconds is 601; it must lie between 10 and 600')]);
    expect(provider.cloud.all()).toEqual([]);
  });

  test('refuses an argument that there is not, and one that cannot be set', async () => {
    edit('  name = "ptk-orders-out"', '  name = "ptk-orders-out"\n  size = 1');
    expect(await deployment.validate()).toEqual([expect.stringContaining('An argument named "size" is not expected here')]);
    edit('size = 1', 'effective_labels = {}');
    expect(await deployment.validate()).toEqual([expect.stringContaining('effective_labels is set by the service')]);
  });

  test('takes over what there was', async () => {
    writeFileSync(
      join(folder, 'import.tf'),
      `import {\n  to = google_pubsub_topic.old\n  id = "projects/${projectId}/topics/old"\n}\nresource "google_pubsub_topic" "old" {\n  name = "old"\n}\n`,
    );
    expect(await deployment.apply()).toEqual([]);
    expect(await deployment.changes()).toEqual([]);
    expect(calls).not.toContainEqual(['create', 'old']);
  });

  test('tells what a hook could not do, and has not made it', async () => {
    await provider.close();
    const refusing: Hooks = { google_pubsub_topic: { create: () => Promise.reject(new Error('the emulator is full')) } };
    provider = await startProvider({ hooks: refusing });
    deployment = deploymentOf(needTerraform(), folder, trees.fifo.deployed, provider);
    expect(await deployment.apply()).toContainEqual(expect.stringContaining('the emulator is full'));
    expect(provider.cloud.all('google_pubsub_topic')).toEqual([]);
  });
});
