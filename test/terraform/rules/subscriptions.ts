import { dedupOptions } from '../../../src/shared/dedup/options.ts';
import { checkSubscription, type SubscriptionFacts } from '../../../src/shared/dedup/subscription-check.ts';
import { fifoOptions } from '../../../src/shared/fifo/options.ts';
import { checkFifoSubscription } from '../../../src/shared/fifo/subscription-check.ts';
import type { NumberOption } from '../../../src/shared/options.ts';
import { type Deployed, deployedIn, pushedTo } from './deployables.ts';
import { type Applied, blockOf, isSame, type Rule, secondsOf, textOf, type World } from './world.ts';

const day = 86_400;
const serverDefaultSeconds = { minimum: 10, maximum: 600, retention: 7 * day } as const;

/** What the toolkit itself would be told of the subscription. */
function factsOf({ values }: Applied, world: World): SubscriptionFacts {
  const retries = blockOf(values, 'retry_policy');
  const deadLetters = blockOf(values, 'dead_letter_policy');
  return {
    ackDeadlineSeconds: Number(values.ack_deadline_seconds ?? 10),
    retentionSeconds: secondsOf(values.message_retention_duration) ?? serverDefaultSeconds.retention,
    topicRetentionSeconds: secondsOf(world.named('google_pubsub_topic', textOf(values.topic))?.values.message_retention_duration),
    retainAcked: values.retain_acked_messages === true,
    maxDeliveryAttempts: deadLetters ? Number(deadLetters.max_delivery_attempts ?? 5) : undefined,
    retryPolicy: retries && {
      minimumSeconds: secondsOf(retries.minimum_backoff) ?? serverDefaultSeconds.minimum,
      maximumSeconds: secondsOf(retries.maximum_backoff) ?? serverDefaultSeconds.maximum,
    },
    exactlyOnce: values.enable_exactly_once_delivery === true,
    ordering: values.enable_message_ordering === true,
    isPush: blockOf(values, 'push_config') !== undefined,
  };
}

/** How long the letters of a subscription's dead-letter topic are kept, at the most. */
function deadLetterSeconds({ values }: Applied, world: World): number {
  const topic = textOf(blockOf(values, 'dead_letter_policy')?.dead_letter_topic);
  const kept = world.all('google_pubsub_subscription').filter((other) => topic !== '' && isSame(textOf(other.values.topic), topic));
  return Math.max(0, ...kept.map((other) => secondsOf(other.values.message_retention_duration) ?? serverDefaultSeconds.retention));
}

const dedups = ({ kind, environment }: Deployed): boolean => (kind === 'dedup' || kind === 'fifo') && environment.DEDUP_MODE !== 'off';

const pushes = (world: World) =>
  deployedIn(world).flatMap((deployed) =>
    pushedTo(world, deployed).map((subscription) => ({ deployed, subscription, facts: factsOf(subscription, world) })),
  );

export const subscriptionRules: readonly Rule[] = [
  {
    name: 'every function has a subscription that pushes to it',
    findings: (world) =>
      deployedIn(world)
        .filter((deployed) => deployed.kind !== 'appengine' && pushedTo(world, deployed).length === 0)
        .map(({ address }) => `${address}: nothing pushes to it`),
  },
  {
    name: 'no subscription that pushes has message ordering',
    findings: (world) =>
      world
        .all('google_pubsub_subscription')
        .filter(({ values }) => values.enable_message_ordering === true && blockOf(values, 'push_config'))
        .map(({ address }) => `${address}: enable_message_ordering must be false; an early message would stay in front of its predecessor`),
  },
  {
    name: 'Pub/Sub waits for an answer as long as a function may run',
    findings: (world) =>
      pushes(world)
        .filter(({ deployed, facts }) => facts.ackDeadlineSeconds < deployed.timeoutSeconds)
        .map(
          ({ deployed, subscription, facts }) =>
            `${subscription.address}: ack_deadline_seconds is ${facts.ackDeadlineSeconds}; ${deployed.address} may run for ${deployed.timeoutSeconds} s`,
        ),
  },
  {
    name: 'a lease and the lifetime of keys fit their subscription',
    findings: (world) =>
      pushes(world)
        .filter(({ deployed }) => dedups(deployed))
        .flatMap(({ deployed, subscription, facts }) => {
          const options = {
            leaseMs: inForce(dedupOptions.leaseMs, deployed),
            ttlSeconds: inForce(dedupOptions.ttlSeconds, deployed),
          };
          const neededSeconds = facts.retentionSeconds + deadLetterSeconds(subscription, world) + day;
          const refused = checkSubscription(facts, options).filter(({ level }) => level === 'refuse');
          const short =
            options.ttlSeconds < neededSeconds
              ? [`DEDUP_TTL_SECONDS is ${options.ttlSeconds}; retention, dead-letter retention and a day are ${neededSeconds}`]
              : [];
          return [...refused.map(({ text }) => text), ...short].map((reason) => `${deployed.address}: ${reason}`);
        }),
  },
  {
    name: 'early messages fit the subscription of the fifo function',
    findings: (world) =>
      pushes(world)
        .filter(({ deployed }) => deployed.kind === 'fifo')
        .flatMap(({ deployed, subscription, facts }) => {
          const leaseMs = inForce(fifoOptions.leaseMs, deployed);
          const early = deployed.environment.FIFO_EARLY === 'nack' ? 'nack' : 'park';
          const findings = checkFifoSubscription(facts, { early, leaseMs }).filter(({ level }) => level === 'refuse');
          return findings.map(({ text }) => `${subscription.address}: ${text}`);
        }),
  },
];

/** The value in force; one that is refused at the start is told of by another rule. */
function inForce({ env, min, max, default: otherwise }: NumberOption, { environment }: Deployed): number {
  const value = Number(environment[env] ?? otherwise);
  return value >= min && value <= max ? value : otherwise;
}
