import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FaultRule } from '../../emulator/faults.ts';
import { startGoogleEmulator } from '../google-emulators.ts';
import { type Running, run } from './processes.ts';

/** Pub/Sub, Firestore and Cloud Tasks for the demo's processes. */
export type Emulators = {
  readonly env: Readonly<Record<'PUBSUB_EMULATOR_HOST' | 'FIRESTORE_EMULATOR_HOST' | 'CLOUD_TASKS_EMULATOR_HOST', string>>;
  setFaults(rules: readonly FaultRule[]): Promise<void>;
  faultCounts(): Promise<Readonly<Record<string, number>>>;
  /** The messages without an ack; `undefined` where the emulator does not tell. */
  backlog(): Promise<number | undefined>;
  stop(): Promise<void>;
};

export type EmulatorsOptions = {
  readonly seed: number;
  readonly appEngineUrl: string;
  /** Google's own for Pub/Sub and Firestore; of Cloud Tasks there is none. */
  readonly official: boolean;
};

const command = join(dirname(dirname(fileURLToPath(import.meta.url))), 'main.js');

/** Each a process of its own. */
export async function startEmulators({ official, ...options }: EmulatorsOptions): Promise<Emulators> {
  const [own, google] = await Promise.all([startEmbedded(options), official ? startGoogles() : undefined]);
  const { pubsub = '', firestore = '', tasks = '' } = { ...own.addresses, ...google?.addresses };
  const ask = async (path: string, init?: RequestInit) =>
    (await fetch(`http://${tasks}${path}`, init)).json() as Promise<Record<string, unknown>>;
  return {
    env: { PUBSUB_EMULATOR_HOST: pubsub, FIRESTORE_EMULATOR_HOST: firestore, CLOUD_TASKS_EMULATOR_HOST: tasks },
    async setFaults(rules) {
      await ask('/faults', { method: 'PUT', body: JSON.stringify(rules) });
    },
    faultCounts: async () => (await ask('/faults')).counts as Record<string, number>,
    backlog: async () => (official ? undefined : Number((await ask('/backlog')).messages)),
    async stop() {
      await Promise.all([own, ...(google?.running ?? [])].map((running) => running.kill()));
    },
  };
}

async function startEmbedded({ seed, appEngineUrl }: Omit<EmulatorsOptions, 'official'>) {
  let addresses: Readonly<Record<string, string>> = {};
  const running = await run({
    name: 'emulator',
    script: command,
    args: [
      ...['emulator', '--json', '--pubsub-port=0', '--firestore-port=0', '--tasks-port=0'],
      ...[`--seed=${seed}`, `--app-engine-url=${appEngineUrl}`],
    ],
    env: {},
    untilReady: async (firstLine) => {
      addresses = JSON.parse(await firstLine);
    },
  });
  return { ...running, addresses };
}

async function startGoogles(): Promise<{ addresses: Readonly<Record<string, string>>; running: readonly Running[] }> {
  const [pubsub, firestore] = await Promise.all([startGoogleEmulator('pubsub'), startGoogleEmulator('firestore')]);
  return { addresses: { pubsub: pubsub.address, firestore: firestore.address }, running: [pubsub, firestore] };
}
