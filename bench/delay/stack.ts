import { PubSub } from '@google-cloud/pubsub';
import type { CloudTasksClient } from '@google-cloud/tasks';
import { freePort } from '../../src/cli/demo/processes.ts';
import { cloudTasksClient } from '../../src/shared/adapters/cloud-tasks.ts';
import { type Deployed, startAppEngine, startFunction } from '../../test/support/deployables.ts';
import { type Ours, startOurs } from '../emulator/servers.ts';

export const projectId = 'bench';
const location = `projects/${projectId}/locations/local`;

/** A queue dispatches 500 a second at most, so these are never what a release waits for. */
export const queues = [1, 2, 3, 4].map((queue) => `${location}/queues/delay-${queue}`);
/** Of a queue under way at once; all of them together are more than one process has use for. */
const concurrentDispatches = 50;

/** Which function a message goes to: without a ledger, or with one for every message. */
export const sides = ['plain', 'ledger'] as const;
export type Side = (typeof sides)[number];
export type Process = Side | 'appEngine' | 'emulator';

export type Stack = {
  readonly pubsub: PubSub;
  readonly tasks: CloudTasksClient;
  /** Every message that a subscription has not had acked. */
  backlog(): Promise<number>;
  stop(): Promise<void>;
};

/**
 * The emulator, a function for each side and the App Engine app, each a process of its own; the topics named as the sides push to the
 * functions, and what is released waits in the subscription `final`.
 *
 * @param inspectPorts where a process takes a debugger
 */
export async function startStack(inspectPorts: Partial<Readonly<Record<Process, number>>> = {}): Promise<Stack> {
  const port = String(await freePort());
  const debuggable = (name: Process) => (inspectPorts[name] ? [`--inspect=${inspectPorts[name]}`, '--inspect-publish-uid=http'] : []);
  const emulator = await startOurs(debuggable('emulator'), [`--app-engine-url=http://127.0.0.1:${port}`]);
  const env = { ...environmentOf(emulator), FINAL_TOPIC: 'final', TASK_QUEUES: queues.join(',') };
  const envOf = (name: Process) => ({ ...env, NODE_OPTIONS: debuggable(name).join(' ') });
  const [plain, ledger, appEngine] = await Promise.all([
    startFunction('delay', envOf('plain')),
    startFunction('delay', { ...envOf('ledger'), DELAY_LEDGER: 'all' }),
    startAppEngine({ ...envOf('appEngine'), PORT: port }),
  ]);
  const functions: Readonly<Record<Side, Deployed>> = { plain, ledger };
  const pubsub = new PubSub({ projectId, apiEndpoint: emulator.addresses.pubsub, emulatorMode: true });
  const tasks = cloudTasksClient(projectId, emulator.addresses.tasks);
  const [final] = await pubsub.createTopic('final');
  await final.createSubscription('final', { ackDeadlineSeconds: 600 });
  for (const side of sides) {
    const [source] = await pubsub.createTopic(side);
    await source.createSubscription(side, { ackDeadlineSeconds: 600, pushConfig: { pushEndpoint: functions[side].url } });
  }
  await createQueues(tasks);
  return {
    pubsub,
    tasks,
    async backlog() {
      const answer = await fetch(`http://${emulator.addresses.pubsub}/backlog`);
      return Number(((await answer.json()) as { messages: number }).messages);
    },
    async stop() {
      await Promise.all([tasks.close(), pubsub.close(), ...[plain, ledger, appEngine].map((running) => running.kill())]);
      await emulator.stop();
    },
  };
}

/** What a deployable needs to reach the emulator. */
export const environmentOf = ({ addresses }: Ours) => ({
  GOOGLE_CLOUD_PROJECT: projectId,
  PUBSUB_EMULATOR_HOST: addresses.pubsub,
  FIRESTORE_EMULATOR_HOST: addresses.firestore,
  CLOUD_TASKS_EMULATOR_HOST: addresses.tasks,
  LOG_LEVEL: 'warn',
});

export async function createQueues(tasks: CloudTasksClient): Promise<void> {
  const rateLimits = { maxDispatchesPerSecond: 500, maxConcurrentDispatches: concurrentDispatches };
  await Promise.all(queues.map((name) => tasks.createQueue({ parent: location, queue: { name, rateLimits } })));
}
