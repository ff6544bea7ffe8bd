import { cloudTasksClient, cloudTasksScheduler } from '../src/shared/adapters/cloud-tasks.ts';
import { system } from '../src/shared/adapters/system.ts';
import { createRelease } from '../src/shared/delay/release.ts';
import { textOf } from '../src/shared/errors.ts';
import { connectBase } from '../src/shell/clients.ts';
import { createApp } from './app.ts';

try {
  const base = connectBase('appengine', process.env);
  const { GOOGLE_CLOUD_PROJECT, TASK_QUEUES, RELEASE_SERVICE, FINAL_TOPIC } = base.settings;
  const client = cloudTasksClient(GOOGLE_CLOUD_PROJECT, process.env.CLOUD_TASKS_EMULATOR_HOST);
  const scheduler = cloudTasksScheduler({ client, queues: TASK_QUEUES.split(','), service: RELEASE_SERVICE, system });
  const app = createApp({ ...base, release: createRelease({ ...base, finalTopic: FINAL_TOPIC, scheduler }) });
  const server = app.listen(Number(process.env.PORT ?? 8080), () => base.log.info({ port: process.env.PORT ?? '8080' }, 'listening'));
  process.once('SIGTERM', () => server.close(() => process.exit(0)));
} catch (error) {
  console.error(`appengine does not start: ${textOf(error)}`);
  process.exit(1);
}
