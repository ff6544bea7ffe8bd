import { blockOf, type Fields, textOf, type World } from './world.ts';

export type Deployable = 'dedup' | 'delay' | 'fifo' | 'appengine';
export type Deployed = {
  readonly kind: Deployable;
  readonly address: string;
  readonly name: string;
  readonly values: Fields;
  readonly serviceAccount: string;
  /** Where it takes requests; of an App Engine service nothing. */
  readonly uri: string;
  readonly timeoutSeconds: number;
  readonly environment: Readonly<Record<string, string>>;
  /** Names whose values are secrets. */
  readonly secrets: readonly string[];
};

const kinds: readonly string[] = ['dedup', 'delay', 'fifo'];

/** Our functions, which their entry point tells, and our App Engine services. */
export function deployedIn(world: World): readonly Deployed[] {
  const functions = world.all('google_cloudfunctions2_function').flatMap(({ address, values }): Deployed[] => {
    const kind = textOf(blockOf(values, 'build_config')?.entry_point);
    const service = blockOf(values, 'service_config');
    if (!kinds.includes(kind)) return [];
    return [
      {
        kind: kind as Deployable,
        address,
        name: textOf(values.name),
        values,
        serviceAccount: textOf(service?.service_account_email),
        uri: textOf(service?.uri),
        timeoutSeconds: Number(service?.timeout_seconds ?? 60),
        environment: (service?.environment_variables ?? {}) as Readonly<Record<string, string>>,
        secrets: ((service?.secret_environment_variables ?? []) as readonly Fields[]).map(({ key }) => textOf(key)),
      },
    ];
  });
  const services = world.all('google_app_engine_standard_app_version').map(
    ({ address, values }): Deployed => ({
      kind: 'appengine',
      address,
      name: textOf(values.service),
      values,
      serviceAccount: textOf(values.service_account),
      uri: '',
      timeoutSeconds: 600,
      // App Engine itself tells an app its project.
      environment: { GOOGLE_CLOUD_PROJECT: textOf(values.project), ...((values.env_variables ?? {}) as Readonly<Record<string, string>>) },
      secrets: [],
    }),
  );
  return [...functions, ...services];
}

/** The subscriptions that push to a deployable. */
export const pushedTo = (world: World, { uri }: Deployed) =>
  world.all('google_pubsub_subscription').filter(({ values }) => {
    const endpoint = textOf(blockOf(values, 'push_config')?.push_endpoint);
    return uri !== '' && (endpoint === uri || endpoint.startsWith(`${uri}/`));
  });
