import type { Subscription } from '@google-cloud/pubsub';
import { dedupOptions } from '../dedup/options.ts';
import { checkSubscription, type Finding, type SubscriptionFacts } from '../dedup/subscription-check.ts';
import { ToolkitError, textOf } from '../errors.ts';
import { checkFifoSubscription, type FifoSubscriptionRules } from '../fifo/subscription-check.ts';
import { type Options, readOptions } from '../options.ts';
import type { Log } from '../ports.ts';

/** What Pub/Sub takes where a subscription says nothing (`docs/facts.md` A.3, A.5). */
const unset = { ackDeadlineSeconds: 10, retentionSeconds: 604_800, maxDeliveryAttempts: 5, minimumSeconds: 10, maximumSeconds: 600 };

/**
 * Reads what Pub/Sub knows of a subscription, with one call that needs `pubsub.subscriptions.get`.
 * @throws what the client throws
 */
export async function subscriptionOf(subscription: Subscription): Promise<SubscriptionFacts> {
  const [read] = await subscription.getMetadata();
  const { deadLetterPolicy, retryPolicy } = read;
  return {
    ackDeadlineSeconds: read.ackDeadlineSeconds || unset.ackDeadlineSeconds,
    retentionSeconds: secondsOf(read.messageRetentionDuration) ?? unset.retentionSeconds,
    topicRetentionSeconds: secondsOf(read.topicMessageRetentionDuration),
    retainAcked: read.retainAckedMessages ?? false,
    maxDeliveryAttempts: deadLetterPolicy ? deadLetterPolicy.maxDeliveryAttempts || unset.maxDeliveryAttempts : undefined,
    retryPolicy: retryPolicy
      ? {
          minimumSeconds: secondsOf(retryPolicy.minimumBackoff) ?? unset.minimumSeconds,
          maximumSeconds: secondsOf(retryPolicy.maximumBackoff) ?? unset.maximumSeconds,
        }
      : undefined,
    exactlyOnce: read.enableExactlyOnceDelivery ?? false,
    ordering: read.enableMessageOrdering ?? false,
    isPush: Boolean(read.pushConfig?.pushEndpoint),
  };
}

/** The client types a duration in more ways than it answers one. */
function secondsOf(duration: unknown): number | undefined {
  if (typeof duration !== 'object' || duration === null) return undefined;
  const { seconds, nanos } = duration as { readonly seconds?: unknown; readonly nanos?: unknown };
  return Number(seconds ?? 0) + Number(nanos ?? 0) / 1e9;
}

export type SubscriptionCheck = {
  /** Those that `createDedup` is given. */
  readonly options?: Partial<Options<typeof dedupOptions>>;
  readonly log: Log;
};

/**
 * Before the first message: does the subscription fit the lease and the lifetime of the dedup records? Warnings are logged, and so
 * is a subscription that cannot be read; that is no reason not to start.
 * @returns what was read, if anything
 * @throws INVALID_SETTINGS with every refusal
 */
export async function checkedSubscription(
  subscription: Subscription,
  { options, log }: SubscriptionCheck,
): Promise<SubscriptionFacts | undefined> {
  const settings = readOptions(dedupOptions, options);
  return await checked(subscription, log, 'dedup', (facts) => checkSubscription(facts, settings));
}

/**
 * Before the first message: may early messages wait as they are to, and does nobody take the head of a stream away?
 * @throws INVALID_SETTINGS with every refusal
 */
export const checkedFifoSubscription = (
  subscription: Subscription,
  { log, ...rules }: FifoSubscriptionRules & { readonly log: Log },
): Promise<SubscriptionFacts | undefined> => checked(subscription, log, 'fifo', (facts) => checkFifoSubscription(facts, rules));

async function checked(
  subscription: Subscription,
  log: Log,
  what: string,
  findingsOf: (facts: SubscriptionFacts) => readonly Finding[],
): Promise<SubscriptionFacts | undefined> {
  const { name } = subscription;
  let facts: SubscriptionFacts;
  try {
    facts = await subscriptionOf(subscription);
  } catch (error) {
    log.warn({ subscription: name, reason: textOf(error) }, `subscription not read, so whether it fits ${what} is not checked`);
    return undefined;
  }
  const findings = findingsOf(facts);
  const textsOf = (level: string) => findings.flatMap((finding) => (finding.level === level ? [finding.text] : []));
  for (const reason of textsOf('warn')) log.warn({ subscription: name, reason }, `subscription does not fit ${what}`);
  const refusals = textsOf('refuse');
  if (refusals.length > 0) throw new ToolkitError('INVALID_SETTINGS', `${name} does not fit ${what}: ${refusals.join('; and ')}`);
  return facts;
}
