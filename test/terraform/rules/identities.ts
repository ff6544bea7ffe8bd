import { deployedIn, pushedTo } from './deployables.ts';
import { type Applied, blockOf, isSame, type Rule, textOf, type World } from './world.ts';

const grants = (world: World, type: string): readonly Applied[] => world.all(type);

const mayInvoke = (world: World, service: string, email: string): boolean =>
  grants(world, 'google_cloud_run_v2_service_iam_member').some(
    ({ values }) =>
      values.role === 'roles/run.invoker' && values.member === `serviceAccount:${email}` && isSame(textOf(values.name), service),
  );

/** Whether an account may publish to a topic, as far as this deployment grants it. */
export const mayPublish = (world: World, topic: string, email: string): boolean =>
  grants(world, 'google_pubsub_topic_iam_member').some(
    ({ values }) =>
      values.role === 'roles/pubsub.publisher' && values.member === `serviceAccount:${email}` && isSame(textOf(values.topic), topic),
  );

/** Have something finer than the project, so a grant on the project is too much. */
const finer = /^roles\/(pubsub|storage|cloudtasks|run|secretmanager|iam|cloudfunctions)\./;
/** Have nothing finer, and a condition that names the one resource. */
const conditioned = /^roles\/datastore\./;

export const identityRules: readonly Rule[] = [
  {
    name: 'every push and every schedule calls a function as an account that may invoke it',
    findings: (world) =>
      deployedIn(world).flatMap((deployed) => {
        const jobs = world
          .all('google_cloud_scheduler_job')
          .filter(({ values }) => deployed.uri !== '' && textOf(blockOf(values, 'http_target')?.uri).startsWith(deployed.uri));
        const callers = [
          ...pushedTo(world, deployed).map(({ address, values }) => ({ address, call: blockOf(values, 'push_config') })),
          ...jobs.map(({ address, values }) => ({ address, call: blockOf(values, 'http_target') })),
        ];
        return callers.flatMap(({ address, call }) => {
          const oidc = blockOf(call, 'oidc_token');
          const email = textOf(oidc?.service_account_email);
          if (!oidc) return [`${address}: it calls ${deployed.name} without oidc_token`];
          if (oidc.audience !== undefined && oidc.audience !== null && oidc.audience !== deployed.uri)
            return [`${address}: the audience is ${String(oidc.audience)}; ${deployed.name} takes ${deployed.uri}`];
          return mayInvoke(world, deployed.name, email) ? [] : [`${address}: ${email} has no roles/run.invoker on ${deployed.name}`];
        });
      }),
  },
  {
    name: 'every deployable has an account of its own',
    findings: (world) => {
      const deployed = deployedIn(world);
      return deployed.flatMap(({ address, serviceAccount }) => {
        const others = deployed.filter((other) => other.address !== address && other.serviceAccount === serviceAccount);
        if (serviceAccount === '' || /^\d+-compute@|@appspot\./.test(serviceAccount))
          return [`${address}: it runs as the project's default account`];
        return others.length > 0 ? [`${address}: it shares ${serviceAccount} with ${others.map((other) => other.address).join(', ')}`] : [];
      });
    },
  },
  {
    name: 'no grant is wider than it must be',
    findings: (world) =>
      grants(world, 'google_project_iam_member').flatMap(({ address, values }) => {
        const role = textOf(values.role);
        if (/^roles\/(owner|editor|viewer)$/.test(role)) return [`${address}: ${role} on the project`];
        if (finer.test(role)) return [`${address}: ${role} can be granted on the one resource`];
        return conditioned.test(role) && !blockOf(values, 'condition')
          ? [`${address}: ${role} needs a condition that names the database`]
          : [];
      }),
  },
  {
    name: 'the enqueuer may create tasks and see the App Engine application',
    findings: (world) =>
      deployedIn(world)
        .filter(({ kind, environment }) => kind === 'delay' && environment.TASK_QUEUES)
        .flatMap(({ address, serviceAccount, environment }) => {
          const member = `serviceAccount:${serviceAccount}`;
          return (environment.TASK_QUEUES ?? '')
            .split(',')
            .filter(
              (queue) =>
                !grants(world, 'google_cloud_tasks_queue_iam_member').some(
                  ({ values }) => values.member === member && isSame(textOf(values.name), queue),
                ),
            )
            .map((queue) => `${address}: ${serviceAccount} has no roles/cloudtasks.enqueuer on ${queue}`);
        }),
  },
  {
    name: 'tasks that publish by themselves do so as an account that may, and that their maker may act as',
    findings: (world) =>
      deployedIn(world)
        .filter(({ kind, environment }) => kind === 'delay' && environment.DELAY_MODE === 'handler-less')
        .flatMap(({ address, serviceAccount, environment }) => {
          const email = environment.RELEASE_ACCOUNT ?? '';
          const topics = [environment.FINAL_TOPIC ?? '', ...(environment.TARGET_TOPICS ?? '').split(',')].filter((topic) => topic !== '');
          const actsAs = grants(world, 'google_service_account_iam_member').some(
            ({ values }) =>
              values.role === 'roles/iam.serviceAccountUser' &&
              values.member === `serviceAccount:${serviceAccount}` &&
              isSame(textOf(values.service_account_id), email),
          );
          return [
            ...(actsAs ? [] : [`${address}: ${serviceAccount} has no roles/iam.serviceAccountUser on ${email}`]),
            ...topics
              .filter((topic) => !mayPublish(world, topic, email))
              .map((topic) => `${address}: ${email}, as which its tasks publish, has no roles/pubsub.publisher on ${topic}`),
          ];
        }),
  },
];
