import type { PubSub, v1 } from '@google-cloud/pubsub';
import { ToolkitError, textOf } from '../errors.ts';
import type { Publisher } from '../ports.ts';

/** gRPC codes with which Pub/Sub refuses a request for good: INVALID_ARGUMENT alone; a missing topic or permission can come. */
const invalidArgument = 3;

/** Longest that the client tries one request, its own retries included; its default is 600 s. */
const publishTimeoutMs = 15_000;

/**
 * Publishes with a connected client; each call is one request, so its messages keep their order. It goes past `pubsub.request`, which writes the
 * project's id over every `{{projectId}}` in a user's attributes, and looks for it in each byte of a body.
 */
export function pubsubPublisher(pubsub: PubSub): Publisher {
  return {
    async publish(topic, messages) {
      try {
        if (!pubsub.isOpen) throw new Error('the Pub/Sub client is closed');
        const client = (await pubsub.getClientAsync_({ client: 'PublisherClient' })) as unknown as v1.PublisherClient;
        const [answer] = await client.publish({ topic: fullName(pubsub, topic), messages: [...messages] }, { timeout: publishTimeoutMs });
        return answer.messageIds ?? [];
      } catch (error) {
        throw publishError(error, topic);
      }
    },
  };
}

const fullName = (pubsub: PubSub, topic: string): string =>
  topic.startsWith('projects/') ? topic : `projects/${pubsub.projectId}/topics/${topic}`;

function publishError(error: unknown, topic: string): ToolkitError {
  return (error as { code?: unknown } | null)?.code === invalidArgument
    ? new ToolkitError('REFUSED', `topic ${topic} refused the message: ${textOf(error)}`, error)
    : new ToolkitError('SERVICE_UNAVAILABLE', `publishing to ${topic}: ${textOf(error)}`, error);
}
