import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, type Running, run, untilAnswers } from '../../../src/cli/demo/processes.ts';
import type { Emulator } from '../../../src/emulator/server.ts';
import type { Cloud } from '../provider/cloud.ts';
import type { Hooks } from '../provider/hooks.ts';
import { isObject, objectsOf, text, type Values } from '../provider/values.ts';
import { type Front, startFront } from './front.ts';

const deployed = fileURLToPath(new URL('../../../dist/deploy/', import.meta.url));
const framework = join(dirname(createRequire(import.meta.url).resolve('@google-cloud/functions-framework')), 'main.js');

export type DeployablesParts = {
  readonly emulator: Pick<Emulator, 'env' | 'identity'>;
  /** Where the emulator calls App Engine. */
  readonly appEnginePort: number;
  /** Each line of JSON that a deployable logs. */
  readonly onLog?: (entry: Readonly<Record<string, unknown>>, resource: string) => void;
};

type Service = { readonly running: Running; readonly port: number };

export type Deployables = {
  readonly hooks: Hooks;
  /** What went through the front of a function and what did not, by full name. */
  readonly fronts: ReadonlyMap<string, Front>;
  /** Ends what no destroy has ended. */
  stop(): Promise<void>;
};

/**
 * Each begins when the one before it has ended, well or not. A deployable gives its database five seconds, in which it loads the client
 * too: all at once on a busy machine would take longer for the loading alone.
 */
export function inTurn(): <T>(begin: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (begin) => {
    const mine = last.then(begin);
    last = mine.catch(() => {});
    return mine;
  };
}

/** Real deployables of `npm run build`, with the environment that Terraform gave them and the emulators' addresses, and no more. */
export function createDeployables({ emulator, appEnginePort, onLog }: DeployablesParts): Deployables {
  const services = new Map<string, Service>();
  const fronts = new Map<string, Front>();
  let appEngine: Running | undefined;
  const start = inTurn();
  const lines = (resource: string) => (line: string) => {
    if (line.startsWith('{')) onLog?.(JSON.parse(line), resource);
  };

  const startFunction = async (values: Values, cloud: Cloud) => {
    const port = await freePort();
    const entryPoint = text(objectsOf(values.build_config)[0]?.entry_point);
    const starting = () =>
      run({
        name: text(values.name),
        script: framework,
        args: [`--target=${entryPoint}`, `--port=${port}`],
        cwd: join(deployed, 'functions'),
        env: { ...functionEnvironment(values, cloud), FUNCTION_TARGET: entryPoint, PORT: String(port), ...emulator.env },
        untilReady: () => untilAnswers(`http://127.0.0.1:${port}`),
        onLine: lines(text(values.name)),
      });
    const running = await start(starting);
    services.set(text(values.id), { running, port });
  };
  const frontOf = async (values: Values, cloud: Cloud): Promise<Front> => {
    const target = () => `http://127.0.0.1:${services.get(text(values.id))?.port}`;
    const front = await startFront({ identity: emulator.identity, mayInvoke: mayInvoke(cloud, text(values.name)), target });
    fronts.set(text(values.id), front);
    return front;
  };
  const startAppEngine = async (values: Values) => {
    const shell = text(objectsOf(values.entrypoint)[0]?.shell);
    const script = /^node (\S+)$/.exec(shell)?.[1];
    if (!script) throw new Error(`App Engine is to run "${shell}", which is not node FILE`);
    const starting = () =>
      run({
        name: text(values.service),
        script: join(deployed, 'appengine', script),
        cwd: join(deployed, 'appengine'),
        // App Engine itself tells an app its project.
        env: { GOOGLE_CLOUD_PROJECT: text(values.project), ...texts(values.env_variables), PORT: String(appEnginePort), ...emulator.env },
        untilReady: () => untilAnswers(`http://127.0.0.1:${appEnginePort}/healthz`),
        onLine: lines(text(values.service)),
      });
    appEngine = await start(starting);
  };

  return {
    fronts,
    hooks: {
      google_cloudfunctions2_function: {
        async create(values, cloud) {
          await startFunction(values, cloud);
          const { url } = await frontOf(values, cloud);
          return { url, service_config: [{ uri: url, gcf_uri: url }] };
        },
        async update(values, _, cloud) {
          await services.get(text(values.id))?.running.kill();
          await startFunction(values, cloud);
          return undefined;
        },
        async delete({ id }) {
          await services.get(text(id))?.running.kill();
          services.delete(text(id));
          await fronts.get(text(id))?.close();
        },
      },
      google_app_engine_standard_app_version: {
        async create(values) {
          await startAppEngine(values);
          return undefined;
        },
        async update(values) {
          await appEngine?.kill();
          await startAppEngine(values);
          return undefined;
        },
        async delete() {
          await appEngine?.kill();
        },
      },
    },
    async stop() {
      await Promise.all([...services.values()].map(({ running }) => running.kill()));
      await Promise.all([...fronts.values()].map((front) => front.close()));
      await appEngine?.kill();
    },
  };
}

const texts = (values: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries((values ?? {}) as Values).map(([name, value]) => [name, text(value)]));

function functionEnvironment(values: Values, cloud: Cloud): Record<string, string> {
  const [service] = objectsOf(values.service_config);
  if (objectsOf(service?.secret_volumes).length > 0) throw new Error(`${text(values.name)} mounts secrets, which nothing here can mount`);
  const secrets = objectsOf(service?.secret_environment_variables).map(({ key, secret }) => [text(key), secretOf(text(secret), cloud)]);
  return { ...texts(isObject(service?.environment_variables) ? service.environment_variables : {}), ...Object.fromEntries(secrets) };
}

/** The newest version of a secret, named by its full name or by its id. */
function secretOf(name: string, cloud: Cloud): string {
  const version = cloud
    .all('google_secret_manager_secret_version')
    .findLast(({ values }) => `/${text(values.secret)}`.endsWith(`/${name}`));
  if (!version) throw new Error(`the secret ${name} has no version`);
  return text(version.values.secret_data);
}

const mayInvoke = (cloud: Cloud, service: string) => (email: string) =>
  cloud
    .all('google_cloud_run_v2_service_iam_member')
    .some(
      ({ values }) =>
        values.role === 'roles/run.invoker' &&
        values.member === `serviceAccount:${email}` &&
        `/${text(values.name)}`.endsWith(`/${service}`),
    );
