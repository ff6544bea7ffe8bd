import { v1 } from '@google-cloud/pubsub';
import { credentials } from '@grpc/grpc-js';
import type { Emulator } from '../../../src/emulator/server.ts';
import { cloudTasksClient } from '../../../src/shared/adapters/cloud-tasks.ts';

/** Google's own clients, on an emulator. */
export function connectClients({ pubsub, tasks }: Pick<Emulator, 'pubsub' | 'tasks'>, projectId: string) {
  const [apiEndpoint = '', port] = pubsub.address.split(':');
  const options = { projectId, apiEndpoint, port: Number(port), sslCreds: credentials.createInsecure() };
  const publisher = new v1.PublisherClient(options);
  const subscriber = new v1.SubscriberClient(options);
  const queues = cloudTasksClient(projectId, tasks.address);
  return {
    publisher,
    subscriber,
    queues,
    async close() {
      await Promise.all([publisher.close(), subscriber.close(), queues.close()]);
    },
  };
}

export type Clients = ReturnType<typeof connectClients>;

/** `"1.5s"` of Terraform as the APIs take it; nothing where there is none. */
export function duration(value: unknown): { seconds: number; nanos: number } | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  const seconds = Number(value.slice(0, -1));
  return { seconds: Math.floor(seconds), nanos: Math.round((seconds % 1) * 1e9) };
}
