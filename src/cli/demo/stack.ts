import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Emulators, startEmulators } from './emulators.ts';
import { freePort, type ProcessPlan, type Running, run, untilAnswers } from './processes.ts';

export const projectId = 'ptk-demo';
export const topics = { delayed: 'ptk-demo-delayed', final: 'ptk-demo-final', plain: 'ptk-demo-plain' } as const;
export const queue = `projects/${projectId}/locations/local/queues/ptk-demo`;

export type StackOptions = {
  readonly seed: number;
  readonly without: string | undefined;
  /** On Google's emulators of Pub/Sub and Firestore. */
  readonly official: boolean;
  readonly onLog: (entry: Record<string, unknown>) => void;
};

export type Stack = {
  /** For clients in this process and for the user's own. */
  readonly env: Readonly<Record<string, string>> & Emulators['env'];
  readonly urls: { readonly dedup: string; readonly delay: string; readonly fifo: string };
  readonly fifo: Running;
  readonly emulators: Emulators;
  /** Whether every message is acked, as far as the emulator tells; else whether none has come for a while. */
  idle(): Promise<boolean>;
  stop(): Promise<void>;
};

const dist = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const leaseMs = '2000';
const mostStarts = 10;
/** Above the longest back-off of the subscriptions. */
const quietMs = 5_000;

/** As the platform does: a function that does not start is started again. Google's Firestore emulator lets its check of the store wait. */
async function untilUp<T>(start: () => Promise<T>): Promise<T> {
  for (let starts = 1; ; starts++) {
    try {
      return await start();
    } catch (error) {
      if (starts === mostStarts) throw error;
    }
  }
}

async function runUntilUp(plan: ProcessPlan): Promise<Running> {
  const running = await untilUp(() => run(plan));
  return { ...running, restart: () => untilUp(running.restart) };
}

/** The emulators, three functions and the App Engine app, each a process of its own, from what `npm run build` made. */
export async function startStack({ seed, without, official, onLog }: StackOptions): Promise<Stack> {
  const [appEnginePort, dedupPort, delayPort, fifoPort] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const emulators = await startEmulators({ seed, official, appEngineUrl: `http://127.0.0.1:${appEnginePort}` });
  const env = { GOOGLE_CLOUD_PROJECT: projectId, ...emulators.env };
  let lastLineAtMs = 0;
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
    FIFO_SWEEP_AFTER_MS: '2000',
    OUTBOX_RELAY_LEASE_MS: leaseMs,
    LOG_LEVEL: 'debug',
  };
  const onLine = (line: string) => {
    if (!line.startsWith('{')) return;
    lastLineAtMs = performance.now();
    onLog(JSON.parse(line));
  };
  const framework = join(dirname(createRequire(import.meta.url).resolve('@google-cloud/functions-framework')), 'main.js');
  const startFunction = (name: string, port: number) =>
    runUntilUp({
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
    runUntilUp({
      name: 'appengine',
      script: join(dist, 'deploy/appengine/app.mjs'),
      env: { ...shared, PORT: String(appEnginePort) },
      untilReady: () => untilAnswers(`http://127.0.0.1:${appEnginePort}/healthz`),
      onLine,
    }),
  ]);
  return {
    env,
    urls: { dedup: `http://127.0.0.1:${dedupPort}/`, delay: `http://127.0.0.1:${delayPort}/`, fifo: `http://127.0.0.1:${fifoPort}/` },
    fifo,
    emulators,
    async idle() {
      const backlog = await emulators.backlog();
      return backlog === undefined ? performance.now() - lastLineAtMs > quietMs : backlog === 0;
    },
    async stop() {
      await Promise.all([...[dedup, delay, fifo, appEngine].map((running) => running.kill()), emulators.stop()]);
    },
  };
}
