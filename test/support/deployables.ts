import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, type Running, run, untilAnswers } from '../../src/cli/demo/processes.ts';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
const framework = join(dirname(createRequire(import.meta.url).resolve('@google-cloud/functions-framework')), 'main.js');

export type Deployed = Running & { readonly url: string; readonly log: readonly Record<string, unknown>[] };

/** What `npm run build` made, as a process of its own. */
async function start(
  name: string,
  script: string,
  env: Readonly<Record<string, string>>,
  healthPath: string,
  args: (port: number) => string[],
): Promise<Deployed> {
  const port = Number(env.PORT ?? (await freePort()));
  const url = `http://127.0.0.1:${port}`;
  const log: Record<string, unknown>[] = [];
  const running = await run({
    name,
    script,
    args: args(port),
    cwd: join(dist, 'deploy', name === 'appengine' ? 'appengine' : 'functions'),
    env: { LOG_LEVEL: 'debug', FUNCTION_TARGET: name, PORT: String(port), ...env },
    untilReady: () => untilAnswers(url + healthPath),
    onLine: (line) => {
      if (line.startsWith('{')) log.push(JSON.parse(line));
    },
  });
  return { ...running, url, log };
}

export const startFunction = (name: 'dedup' | 'delay' | 'fifo', env: Readonly<Record<string, string>>): Promise<Deployed> =>
  start(name, framework, env, '/', (port) => [`--target=${name}`, `--port=${port}`]);

export const startAppEngine = (env: Readonly<Record<string, string>>): Promise<Deployed> =>
  start('appengine', join(dist, 'deploy/appengine/app.mjs'), env, '/healthz', () => []);

export type PushOptions = { readonly headers?: Readonly<Record<string, string>>; readonly raw?: string };

/** Posts as Pub/Sub pushes; resolves to the status. */
export async function post(url: string, body: unknown, { headers = {}, raw }: PushOptions = {}): Promise<number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: raw ?? JSON.stringify(body),
  });
  await response.body?.cancel();
  return response.status;
}

export const pushBody = (attributes: Readonly<Record<string, string>>, data = 'x', messageId = '1') => ({
  message: {
    messageId,
    message_id: messageId,
    data: Buffer.from(data).toString('base64'),
    attributes,
    publishTime: '2026-01-01T00:00:00Z',
  },
  subscription: 'projects/p/subscriptions/s',
});
