import type { PubSub } from '@google-cloud/pubsub';
import { ToolkitError } from '../errors.ts';
import type { Publisher } from '../ports.ts';

/** gRPC codes with which Pub/Sub refuses a request for good: INVALID_ARGUMENT alone; a missing topic or permission can come. */
const invalidArgument = 3;

/** Longest that the client tries one request, its own retries included; its default is 600 s. */
const publishTimeoutMs = 15_000;

/** Publishes with a connected client; each call is one request, so its messages keep their order. */
export function pubsubPublisher(pubsub: PubSub): Publisher {
  return {
    publish(topic, messages) {
      const reqOpts = { topic: fullName(pubsub, topic), messages: messages.map((message) => ({ ...message })) };
      return new Promise((resolve, reject) => {
        pubsub.request<{ messageIds?: string[] }>(
          { client: 'PublisherClient', method: 'publish', reqOpts, gaxOpts: { timeout: publishTimeoutMs } },
          (error, response) => {
            if (error) return reject(publishError(error, topic));
            resolve(response?.messageIds ?? []);
          },
        );
      });
    },
  };
}

const fullName = (pubsub: PubSub, topic: string): string =>
  topic.startsWith('projects/') ? topic : `projects/${pubsub.projectId}/topics/${topic}`;

function publishError(error: { code?: unknown; message: string }, topic: string): ToolkitError {
  return error.code === invalidArgument
    ? new ToolkitError('REFUSED', `topic ${topic} refused the message: ${error.message}`, error)
    : new ToolkitError('SERVICE_UNAVAILABLE', `publishing to ${topic}: ${error.message}`, error);
}
