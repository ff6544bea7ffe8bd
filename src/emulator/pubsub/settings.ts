import { invalidArgument, unimplemented } from '../grpc.ts';
import { parseFilter } from './filter.ts';

export type Duration = { readonly seconds: string; readonly nanos: number };
export type PushConfig = {
  readonly pushEndpoint: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly oidcToken?: { readonly serviceAccountEmail: string; readonly audience: string } | null;
  readonly noWrapper?: { readonly writeMetadata: boolean } | null;
};
export type DeadLetterPolicy = { readonly deadLetterTopic: string; readonly maxDeliveryAttempts: number };
export type RetryPolicy = { readonly minimumBackoff: Duration | null; readonly maximumBackoff: Duration | null };

/** A subscription as it stands on the wire. */
export type SubscriptionSettings = {
  readonly name: string;
  readonly topic: string;
  readonly pushConfig: PushConfig | null;
  readonly ackDeadlineSeconds: number;
  readonly retainAckedMessages: boolean;
  readonly messageRetentionDuration: Duration | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly enableMessageOrdering: boolean;
  readonly expirationPolicy: { readonly ttl: Duration | null } | null;
  readonly filter: string;
  readonly deadLetterPolicy: DeadLetterPolicy | null;
  readonly retryPolicy: RetryPolicy | null;
  readonly detached: boolean;
  readonly enableExactlyOnceDelivery: boolean;
  readonly state: string;
};

const day = 86_400;
const ranges = {
  ackDeadlineSeconds: [10, 600],
  retentionSeconds: [600, 31 * day],
  expirationSeconds: [day, Number.POSITIVE_INFINITY],
  maxDeliveryAttempts: [5, 100],
  backoffMs: [0, 600_000],
} as const;

export const msOfDuration = ({ seconds, nanos }: Duration): number => Number(seconds) * 1_000 + nanos / 1_000_000;
const duration = (seconds: number): Duration => ({ seconds: String(seconds), nanos: 0 });

/** Checks what was asked for and fills in what was not (`docs/facts.md` A.3, A.5). */
export function normalized(asked: SubscriptionSettings): SubscriptionSettings {
  refuseUnsupported(asked);
  const retention = asked.messageRetentionDuration ?? duration(7 * day);
  const ackDeadlineSeconds = asked.ackDeadlineSeconds || 10;
  within('ack_deadline_seconds', ackDeadlineSeconds, ranges.ackDeadlineSeconds);
  checkRetention(retention);
  checkExpiration(asked.expirationPolicy);
  parseFilter(asked.filter);
  if (asked.enableExactlyOnceDelivery && asked.pushConfig?.pushEndpoint)
    throw invalidArgument('exactly-once delivery is for messages that are pulled, not for push');
  return {
    ...asked,
    ackDeadlineSeconds,
    messageRetentionDuration: retention,
    expirationPolicy: asked.expirationPolicy ?? { ttl: duration(31 * day) },
    deadLetterPolicy: asked.deadLetterPolicy?.deadLetterTopic ? deadLetterPolicy(asked.deadLetterPolicy) : null,
    retryPolicy: asked.retryPolicy && retryPolicy(asked.retryPolicy),
    pushConfig: asked.pushConfig ?? { pushEndpoint: '', attributes: {} },
    detached: false,
    state: 'ACTIVE',
  };
}

export function checkRetention(retention: Duration | null): void {
  if (retention) within('message_retention_duration in seconds', msOfDuration(retention) / 1_000, ranges.retentionSeconds);
}

function refuseUnsupported(asked: SubscriptionSettings): void {
  const given = asked as SubscriptionSettings & Record<string, unknown>;
  for (const name of ['bigqueryConfig', 'cloudStorageConfig', 'bigtableConfig'])
    if (given[name]) throw unimplemented(`subscriptions with ${name}`);
  if (Array.isArray(given.messageTransforms) && given.messageTransforms.length > 0) throw unimplemented('message transforms');
  checkPushConfig(asked.pushConfig);
}

function checkPushConfig(config: PushConfig | null): void {
  if (!config?.pushEndpoint) return;
  if (!URL.canParse(config.pushEndpoint) || !/^https?:/.test(config.pushEndpoint))
    throw invalidArgument(`push endpoint "${config.pushEndpoint}" is no http URL`);
  if (config.oidcToken && !config.oidcToken.serviceAccountEmail) throw invalidArgument('oidc_token has no service_account_email');
  for (const [name, value] of Object.entries(config.attributes)) {
    if (name !== 'x-goog-version') throw invalidArgument(`the push attribute "${name}" is not known; x-goog-version is`);
    if (value !== 'v1' && value !== 'v1beta2') throw unimplemented(`x-goog-version ${value} of push`);
  }
}

/** A policy without a ttl: the subscription never expires. */
function checkExpiration(policy: SubscriptionSettings['expirationPolicy']): void {
  if (policy?.ttl) within('expiration_policy.ttl in seconds', msOfDuration(policy.ttl) / 1_000, ranges.expirationSeconds);
}

function deadLetterPolicy({ deadLetterTopic, maxDeliveryAttempts }: DeadLetterPolicy): DeadLetterPolicy {
  const attempts = maxDeliveryAttempts || 5;
  within('max_delivery_attempts', attempts, ranges.maxDeliveryAttempts);
  return { deadLetterTopic, maxDeliveryAttempts: attempts };
}

function retryPolicy({ minimumBackoff, maximumBackoff }: RetryPolicy): RetryPolicy {
  const [least, most] = [minimumBackoff ?? duration(10), maximumBackoff ?? duration(600)];
  within('minimum_backoff in ms', msOfDuration(least), ranges.backoffMs);
  within('maximum_backoff in ms', msOfDuration(most), ranges.backoffMs);
  if (msOfDuration(least) > msOfDuration(most)) {
    throw invalidArgument(`minimum_backoff is ${msOfDuration(least)} ms, longer than maximum_backoff with ${msOfDuration(most)} ms`);
  }
  return { minimumBackoff: least, maximumBackoff: most };
}

function within(what: string, value: number, [least, most]: readonly [number, number]): void {
  if (!(value >= least && value <= most)) throw invalidArgument(`${what} is ${value}; it must lie from ${least} to ${most}`);
}

const changeable = {
  ack_deadline_seconds: 'ackDeadlineSeconds',
  push_config: 'pushConfig',
  retain_acked_messages: 'retainAckedMessages',
  message_retention_duration: 'messageRetentionDuration',
  labels: 'labels',
  expiration_policy: 'expirationPolicy',
  dead_letter_policy: 'deadLetterPolicy',
  retry_policy: 'retryPolicy',
  enable_exactly_once_delivery: 'enableExactlyOnceDelivery',
} as const satisfies Record<string, keyof SubscriptionSettings>;

/** Changes the masked fields alone; name, topic, ordering and filter are fixed once the subscription exists. */
export function updated(current: SubscriptionSettings, asked: SubscriptionSettings, paths: readonly string[]): SubscriptionSettings {
  if (paths.length === 0) throw invalidArgument('update_mask is empty');
  const changes = paths.map((path) => {
    if (!Object.hasOwn(changeable, path)) throw invalidArgument(`update_mask names "${path}", which cannot be changed`);
    const field = changeable[path as keyof typeof changeable];
    return [field, asked[field]];
  });
  return { ...normalized({ ...current, ...Object.fromEntries(changes) }), detached: current.detached };
}

/** How long after its `failures`-th failed delivery a message waits: the least doubled each time, at most the most. */
export function backoffMs(policy: RetryPolicy | null, failures: number): number {
  if (!policy?.minimumBackoff || !policy.maximumBackoff) return 0;
  return Math.min(msOfDuration(policy.minimumBackoff) * 2 ** (failures - 1), msOfDuration(policy.maximumBackoff));
}
