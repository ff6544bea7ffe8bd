import type { Hooks } from '../provider/hooks.ts';
import { isObject, objectsOf, text, type Values } from '../provider/values.ts';
import { type Clients, duration } from './clients.ts';

const labelsOf = ({ labels }: Values): Record<string, string> =>
  Object.fromEntries(Object.entries(isObject(labels) ? labels : {}).map(([name, value]) => [name, text(value)]));

/** What cannot be absent from an update: all that may change. */
const topicOf = (values: Values) => ({
  name: text(values.id),
  labels: labelsOf(values),
  messageRetentionDuration: duration(values.message_retention_duration) ?? null,
});

const fullTopic = (topic: string, project: string): string =>
  topic.startsWith('projects/') ? topic : `projects/${project}/topics/${topic}`;

function pushConfigOf(values: Values) {
  const [push] = objectsOf(values.push_config);
  if (!push) return {};
  const [oidc] = objectsOf(push.oidc_token);
  const oidcToken = oidc && { serviceAccountEmail: text(oidc.service_account_email), audience: text(oidc.audience) };
  const [noWrapper] = objectsOf(push.no_wrapper);
  return {
    pushConfig: {
      pushEndpoint: text(push.push_endpoint),
      ...(oidcToken && { oidcToken }),
      ...(noWrapper && { noWrapper: { writeMetadata: noWrapper.write_metadata === true } }),
    },
  };
}

function subscriptionOf(values: Values) {
  const [deadLetters] = objectsOf(values.dead_letter_policy);
  const [retries] = objectsOf(values.retry_policy);
  const [expiration] = objectsOf(values.expiration_policy);
  return {
    name: text(values.id),
    topic: fullTopic(text(values.topic), text(values.project)),
    labels: labelsOf(values),
    ackDeadlineSeconds: Number(values.ack_deadline_seconds ?? 10),
    messageRetentionDuration: duration(values.message_retention_duration) ?? null,
    retainAckedMessages: values.retain_acked_messages === true,
    enableMessageOrdering: values.enable_message_ordering === true,
    enableExactlyOnceDelivery: values.enable_exactly_once_delivery === true,
    filter: text(values.filter),
    ...pushConfigOf(values),
    ...(deadLetters && {
      deadLetterPolicy: {
        deadLetterTopic: text(deadLetters.dead_letter_topic),
        maxDeliveryAttempts: Number(deadLetters.max_delivery_attempts ?? 5),
      },
    }),
    ...(retries && {
      retryPolicy: {
        minimumBackoff: duration(retries.minimum_backoff) ?? { seconds: 10 },
        maximumBackoff: duration(retries.maximum_backoff) ?? { seconds: 600 },
      },
    }),
    // An empty ttl means that it never expires.
    ...(expiration && { expirationPolicy: { ttl: duration(expiration.ttl) ?? null } }),
  };
}

const changeable = [
  'labels',
  'ack_deadline_seconds',
  'message_retention_duration',
  'retain_acked_messages',
  'enable_exactly_once_delivery',
  'push_config',
  'dead_letter_policy',
  'retry_policy',
  'expiration_policy',
];

/** Topics and subscriptions in the emulator, as Terraform describes them. */
export const pubsubHooks = ({ publisher, subscriber }: Pick<Clients, 'publisher' | 'subscriber'>): Hooks => ({
  google_pubsub_topic: {
    async create(values) {
      await publisher.createTopic(topicOf(values));
      return undefined;
    },
    isThere: ({ id }) => isThere(publisher.getTopic({ topic: text(id) })),
    async update(values) {
      const paths = ['labels', 'message_retention_duration'];
      await publisher.updateTopic({ topic: topicOf(values), updateMask: { paths } });
      return undefined;
    },
    async delete({ id }) {
      await publisher.deleteTopic({ topic: text(id) });
    },
  },
  google_pubsub_subscription: {
    async create(values) {
      await subscriber.createSubscription(subscriptionOf(values));
      return undefined;
    },
    isThere: ({ id }) => isThere(subscriber.getSubscription({ subscription: text(id) })),
    async update(values) {
      await subscriber.updateSubscription({ subscription: subscriptionOf(values), updateMask: { paths: changeable } });
      return undefined;
    },
    async delete({ id }) {
      await subscriber.deleteSubscription({ subscription: text(id) });
    },
  },
});

const notFound = 5;

/** Whether a GET finds it; any other error is one. */
export async function isThere(get: Promise<unknown>): Promise<boolean> {
  try {
    await get;
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === notFound) return false;
    throw error;
  }
}
