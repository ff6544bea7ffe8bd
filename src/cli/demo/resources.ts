import type { PubSub } from '@google-cloud/pubsub';
import { cloudTasksClient } from '../../shared/adapters/cloud-tasks.ts';
import { projectId, queue, type Stack, topics } from './stack.ts';

const retryPolicy = { minimumBackoff: { nanos: 100_000_000 }, maximumBackoff: { seconds: 1 } };

/** Topics, push subscriptions without message ordering, and the queue. */
export async function prepare(stack: Stack, pubsub: PubSub, without: string | undefined): Promise<void> {
  const endpoints = {
    [topics.delayed]: stack.urls.delay,
    [topics.final]: without === 'fifo' ? stack.urls.dedup : stack.urls.fifo,
    [topics.plain]: stack.urls.dedup,
  };
  await Promise.all(
    Object.entries(endpoints).map(async ([topic, pushEndpoint]) => {
      await pubsub.createTopic(topic);
      await pubsub
        .topic(topic)
        .createSubscription(topic, { pushConfig: { pushEndpoint }, retryPolicy, enableMessageOrdering: false, ackDeadlineSeconds: 10 });
    }),
  );
  const tasks = cloudTasksClient(projectId, stack.env.CLOUD_TASKS_EMULATOR_HOST);
  await tasks.createQueue({
    parent: queue.slice(0, queue.indexOf('/queues/')),
    queue: { name: queue, retryConfig: { maxAttempts: -1, minBackoff: { nanos: 100_000_000 }, maxBackoff: { seconds: 1 } } },
  });
  await tasks.close();
}
