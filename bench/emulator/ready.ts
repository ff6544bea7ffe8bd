import { encoderOf, rawClient } from './raw-client.ts';
import { startOurs } from './servers.ts';

const firstCalls = [
  { service: 'pubsub', method: '/google.pubsub.v1.Publisher/ListTopics', type: 'google.pubsub.v1.ListTopicsRequest' },
  { service: 'firestore', method: '/google.firestore.v1.Firestore/Commit', type: 'google.firestore.v1.CommitRequest' },
  { service: 'tasks', method: '/google.cloud.tasks.v2.CloudTasks/ListQueues', type: 'google.cloud.tasks.v2.ListQueuesRequest' },
] as const;

const requests = {
  pubsub: encoderOf('@google-cloud/pubsub', 'protos.json')(firstCalls[0].type, { project: 'projects/bench' }),
  firestore: encoderOf('@google-cloud/firestore', 'v1.json')(firstCalls[1].type, { database: 'projects/bench/databases/(default)' }),
  tasks: encoderOf('@google-cloud/tasks', 'protos.json')(firstCalls[2].type, { parent: 'projects/bench/locations/europe-west1' }),
};

/** From the start of the process to the first good answer of all three services. */
export async function readyMs(): Promise<number> {
  const startMs = performance.now();
  const ours = await startOurs();
  await Promise.all(
    firstCalls.map(async ({ service, method }) => {
      const client = rawClient(ours.addresses[service]);
      await client.unary(method, requests[service]);
      client.close();
    }),
  );
  const tookMs = performance.now() - startMs;
  await ours.stop();
  return tookMs;
}
