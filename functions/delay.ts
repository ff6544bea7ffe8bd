import { cloudTasksClient, cloudTasksScheduler } from '../src/shared/adapters/cloud-tasks.ts';
import { system } from '../src/shared/adapters/system.ts';
import { createDelay } from '../src/shared/delay/delay.ts';
import { createPush } from '../src/shared/transports/push.ts';
import { connectBase } from '../src/shell/clients.ts';
import type { Environment } from '../src/shell/settings.ts';
import { type HttpFunction, pushFunction } from './http.ts';

/** Turns messages with a due time into tasks. */
export async function startDelay(environment: Environment): Promise<HttpFunction> {
  const base = connectBase('delay', environment);
  const { GOOGLE_CLOUD_PROJECT, TASK_QUEUES, RELEASE_SERVICE, FINAL_TOPIC } = base.settings;
  const client = cloudTasksClient(GOOGLE_CLOUD_PROJECT, environment.CLOUD_TASKS_EMULATOR_HOST);
  const scheduler = cloudTasksScheduler({ client, queues: TASK_QUEUES.split(','), service: RELEASE_SERVICE, system });
  return pushFunction(createPush({ ...base, handle: createDelay({ ...base, finalTopic: FINAL_TOPIC, scheduler, system }) }));
}
