import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FaultRule } from '../../emulator/faults.ts';
import { freePort, type Running, run, untilAnswers } from './processes.ts';

export const projectId = 'ptk-demo';
export const topics = { delayed: 'ptk-demo-delayed', final: 'ptk-demo-final', plain: 'ptk-demo-plain' } as const;
export const queue = `projects/${projectId}/locations/local/queues/ptk-demo`;

export type StackOptions = {
  readonly seed: number;
  readonly without: string | undefined;
  readonly onLog: (entry: Record<string, unknown>) => void;
};

export type Stack = {
  /** For clients in this process and for the user's own. */
  readonly env: Readonly<Record<string, string>>;
  readonly urls: { readonly dedup: string; readonly delay: string; readonly fifo: string };
  readonly fifo: Running;
  setFaults(rules: readonly FaultRule[]): Promise<void>;
  faultCounts(): Promise<Readonly<Record<string, number>>>;
  backlog(): Promise<number>;
  stop(): Promise<void>;
};

const dist = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const leaseMs = '2000';

/** The emulator, three functions and the App Engine app, each a process of its own, from what `npm run build` made. */
export async function startStack({ seed, without, onLog }: StackOptions): Promise<Stack> {
  const [appEnginePort, dedupPort, delayPort, fifoPort] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  let addresses: Record<string, string> = {};
  const emulator = await run({
    name: 'emulator',
    script: join(dist, 'src/cli/main.js'),
    args: [
      ...['emulator', '--json', '--pubsub-port=0', '--firestore-port=0', '--tasks-port=0'],
      ...[`--seed=${seed}`, `--app-engine-url=http://127.0.0.1:${appEnginePort}`],
    ],
    env: {},
    untilReady: async (firstLine) => {
      addresses = JSON.parse(await firstLine);
    },
  });
  const { pubsub = '', firestore = '', tasks = '' } = addresses;
  const env = {
    GOOGLE_CLOUD_PROJECT: projectId,
    PUBSUB_EMULATOR_HOST: pubsub,
    FIRESTORE_EMULATOR_HOST: firestore,
    CLOUD_TASKS_EMULATOR_HOST: tasks,
  };
  const shared = {
    ...env,
    CONSUMER: 'demo',
    FINAL_TOPIC: topics.final,
    TASK_QUEUES: queue,
    SINK: 'module:../../src/cli/demo/sink.js',
    DEDUP_MODE: without === 'dedup' ? 'off' : 'inbox',
    DEDUP_LEASE_MS: leaseMs,
    FIFO_LEASE_MS: leaseMs,
    FIFO_HOLD_MS: '1000',
    OUTBOX_RELAY_LEASE_MS: leaseMs,
    LOG_LEVEL: 'debug',
  };
  const onLine = (line: string) => {
    if (line.startsWith('{')) onLog(JSON.parse(line));
  };
  const framework = join(dirname(createRequire(import.meta.url).resolve('@google-cloud/functions-framework')), 'main.js');
  const startFunction = (name: string, port: number) =>
    run({
      name,
      script: framework,
      args: [`--target=${name}`, `--port=${port}`],
      cwd: join(dist, 'deploy/functions'),
      env: { ...shared, FUNCTION_TARGET: name },
      untilReady: () => untilAnswers(`http://127.0.0.1:${port}/`),
      onLine,
    });
  const [dedup, delay, fifo, appEngine] = await Promise.all([
    startFunction('dedup', dedupPort),
    startFunction('delay', delayPort),
    startFunction('fifo', fifoPort),
    run({
      name: 'appengine',
      script: join(dist, 'deploy/appengine/app.mjs'),
      env: { ...shared, PORT: String(appEnginePort) },
      untilReady: () => untilAnswers(`http://127.0.0.1:${appEnginePort}/healthz`),
      onLine,
    }),
  ]);
  const ask = async (path: string, init?: RequestInit) =>
    (await fetch(`http://${tasks}${path}`, init)).json() as Promise<Record<string, unknown>>;
  return {
    env,
    urls: { dedup: `http://127.0.0.1:${dedupPort}/`, delay: `http://127.0.0.1:${delayPort}/`, fifo: `http://127.0.0.1:${fifoPort}/` },
    fifo,
    async setFaults(rules) {
      await ask('/faults', { method: 'PUT', body: JSON.stringify(rules) });
    },
    faultCounts: async () => (await ask('/faults')).counts as Record<string, number>,
    backlog: async () => Number((await ask('/backlog')).messages),
    async stop() {
      await Promise.all([dedup, delay, fifo, appEngine, emulator].map((running) => running.kill()));
    },
  };
}
