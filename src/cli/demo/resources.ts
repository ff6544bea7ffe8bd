import type { PubSub, Subscription } from '@google-cloud/pubsub';
import { cloudTasksClient } from '../../shared/adapters/cloud-tasks.ts';
import { forward } from './forwarder.ts';
import { projectId, queue, type Stack, type StackOptions, topics } from './stack.ts';

const retryPolicy = { minimumBackoff: { nanos: 100_000_000 }, maximumBackoff: { seconds: 1 } };

type ResourcesOptions = Pick<StackOptions, 'without' | 'official'>;

/** Topics, subscriptions without message ordering, and the queue; resolves to the subscriptions that are pulled from here. */
export async function prepare(stack: Stack, pubsub: PubSub, { without, official }: ResourcesOptions): Promise<readonly Subscription[]> {
  const endpoints = {
    [topics.delayed]: stack.urls.delay,
    [topics.final]: without === 'fifo' ? stack.urls.dedup : stack.urls.fifo,
    [topics.plain]: stack.urls.dedup,
  };
  const forwarded = await Promise.all(
    Object.entries(endpoints).map(async ([topic, pushEndpoint]) => {
      await pubsub.createTopic(topic);
      const push = official ? {} : { pushConfig: { pushEndpoint }, retryPolicy };
      await pubsub.topic(topic).createSubscription(topic, { ...push, enableMessageOrdering: false, ackDeadlineSeconds: 10 });
      return official ? [forward(pubsub, topic, pushEndpoint)] : [];
    }),
  );
  const tasks = cloudTasksClient(projectId, stack.env.CLOUD_TASKS_EMULATOR_HOST);
  await tasks.createQueue({
    parent: queue.slice(0, queue.indexOf('/queues/')),
    queue: { name: queue, retryConfig: { maxAttempts: -1, minBackoff: { nanos: 100_000_000 }, maxBackoff: { seconds: 1 } } },
  });
  await tasks.close();
  return forwarded.flat();
}
