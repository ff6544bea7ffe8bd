import { readFileSync } from 'node:fs';
import { freePort } from '../../../src/cli/demo/processes.ts';
import { type Emulator, startEmulator } from '../../../src/emulator/server.ts';
import type { Cloud, Resource } from '../provider/cloud.ts';
import { type Provider, startProvider } from '../provider/server.ts';
import { connectClients } from './clients.ts';
import { createDeployables, type Deployables } from './deployables.ts';
import { pubsubHooks } from './pubsub.ts';
import { fireJob } from './scheduler.ts';
import { tasksHooks } from './tasks.ts';

/** Where Terraform's resources are real: the emulators, and the deployables that it starts on them. */
export type Stage = {
  readonly provider: Provider;
  readonly cloud: Cloud;
  readonly emulator: Emulator;
  /** For clients in this process: `PUBSUB_EMULATOR_HOST` and the others. */
  readonly env: Readonly<Record<string, string>>;
  readonly fronts: Deployables['fronts'];
  /** What the deployables have logged, with the name of the function or service. */
  readonly log: readonly (Readonly<Record<string, unknown>> & { readonly resource: string })[];
  /** Lets a Cloud Scheduler job call once. */
  fire(job: string): Promise<{ readonly status: number; readonly text: string }>;
  close(): Promise<void>;
};

export type StageOptions = {
  readonly projectId: string;
  readonly existing?: readonly Resource[];
  /** A `firestore.indexes.json`; with it a query that has no index is refused, as in production. */
  readonly indexesFile?: string;
};

export async function startStage({ projectId, existing = [], indexesFile }: StageOptions): Promise<Stage> {
  const appEnginePort = await freePort();
  const firestore = indexesFile === undefined ? {} : { firestore: { indexes: JSON.parse(readFileSync(indexesFile, 'utf8')) } };
  const emulator = await startEmulator({ appEngineUrl: `http://127.0.0.1:${appEnginePort}`, ...firestore });
  const clients = connectClients(emulator, projectId);
  const log: (Readonly<Record<string, unknown>> & { readonly resource: string })[] = [];
  const onLog = (entry: Readonly<Record<string, unknown>>, resource: string) => void log.push({ ...entry, resource });
  const deployables = createDeployables({ emulator, appEnginePort, onLog });
  const hooks = { ...pubsubHooks(clients), ...tasksHooks(clients), ...deployables.hooks };
  const provider = await startProvider({ hooks, existing });
  return {
    provider,
    cloud: provider.cloud,
    emulator,
    env: emulator.env,
    fronts: deployables.fronts,
    log,
    fire: (job) => fireJob(provider.cloud, emulator.identity, job),
    async close() {
      await deployables.stop();
      await provider.close();
      await clients.close();
      await emulator.close();
    },
  };
}
