import { PubSub } from '@google-cloud/pubsub';
import { createDelay, createPublisher, system } from 'pubsub-toolkit';
import { pubsubPublisher } from 'pubsub-toolkit/pubsub';
import { startPull } from 'pubsub-toolkit/pull';
import { cloudTasksClient, cloudTasksScheduler } from 'pubsub-toolkit/tasks';
import { deadLetters, finalTopic, log, projectId, queue, subscription, topic } from './setting.ts';

/** Later: a reminder goes out when it is due. The App Engine app of this repository releases it to the final topic. */
export async function remindIn(delayMs: number) {
  const pubsub = new PubSub();
  const publisher = pubsubPublisher(pubsub);
  const client = cloudTasksClient(projectId, process.env.CLOUD_TASKS_EMULATOR_HOST);
  const scheduler = cloudTasksScheduler({ client, release: { service: 'release' }, system });
  const handle = createDelay({ publisher, finalTopic, scheduler, queues: [queue], system, log });
  const pull = startPull({ subscription: pubsub.subscription(subscription), handle, deadLetters, system, log });
  const publish = createPublisher({ publisher, topic, system });
  await publish({ key: 'reminder-4', data: Buffer.from('call back'), delayMs });
  return pull;
}
