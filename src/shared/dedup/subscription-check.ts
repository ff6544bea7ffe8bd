/** What a subscription says about how often, and until when, it may deliver a message. */
export type SubscriptionFacts = {
  /** As set, and for push the time that an answer may take. */
  readonly ackDeadlineSeconds: number;
  /** How long a message that nobody acked is kept. */
  readonly retentionSeconds: number;
  /** How far back a seek may reach, acked or not; of the topic. */
  readonly topicRetentionSeconds: number | undefined;
  readonly retainAcked: boolean;
  /** From 5 to 100; `undefined` without a dead-letter policy. */
  readonly maxDeliveryAttempts: number | undefined;
  readonly retryPolicy: { readonly minimumSeconds: number; readonly maximumSeconds: number } | undefined;
  readonly exactlyOnce: boolean;
  readonly ordering: boolean;
  readonly isPush: boolean;
};

export type Finding = { readonly level: 'refuse' | 'warn'; readonly text: string };

/** The Node client asks for its own deadline on a stream, at the least these (`docs/facts.md` A.4). */
const streamSeconds = { plain: 10, exactlyOnce: 60 } as const;
/** A dead-letter subscription keeps a message that long at most. */
const longestRetentionSeconds = 2_678_400;

/**
 * Whether the lease and the lifetime of dedup records fit a subscription. A record must outlive every delivery of its message,
 * and a lease the time for which Pub/Sub itself leaves a delivery alone. Equal is enough.
 */
export function checkSubscription(
  facts: SubscriptionFacts,
  { leaseMs, ttlSeconds }: { readonly leaseMs: number; readonly ttlSeconds: number },
): Finding[] {
  const { ackDeadlineSeconds, retentionSeconds, topicRetentionSeconds, retainAcked, maxDeliveryAttempts, retryPolicy } = facts;
  const streamed = facts.isPush ? 0 : facts.exactlyOnce ? streamSeconds.exactlyOnce : streamSeconds.plain;
  const deadlineMs = Math.max(ackDeadlineSeconds, streamed) * 1_000;
  const deadLetterSeconds = retentionSeconds + longestRetentionSeconds;
  const ttlBelow = (limitSeconds: number | undefined) => limitSeconds !== undefined && ttlSeconds < limitSeconds;
  const ttl = `ttlSeconds is ${ttlSeconds}`;

  const findings: (Finding | false)[] = [
    leaseMs < deadlineMs && {
      level: 'refuse',
      text: `leaseMs is ${leaseMs}; it must be at least ${deadlineMs}, the ack deadline in force`,
    },
    ttlBelow(retentionSeconds) && {
      level: 'refuse',
      text: `${ttl}; it must be at least ${retentionSeconds}, for so long the subscription may deliver a message again`,
    },
    retainAcked &&
      ttlBelow(retentionSeconds) && {
        level: 'warn',
        text: `${ttl}; the subscription retains acked messages for ${retentionSeconds} s, and a seek may deliver them again after that`,
      },
    ttlBelow(topicRetentionSeconds) && {
      level: 'warn',
      text: `${ttl}; the topic retains messages for ${topicRetentionSeconds} s, and a seek may deliver them again after that`,
    },
    maxDeliveryAttempts !== undefined &&
      ttlBelow(deadLetterSeconds) && {
        level: 'warn',
        text: `${ttl}; a dead letter may be published again up to ${deadLetterSeconds} s after its message`,
      },
    !retryPolicy && {
      level: 'warn',
      text: 'retryPolicy is not set; a message that is given back comes again at once (minimumBackoff of 1 s or more is advised)',
    },
  ];
  return findings.filter((finding) => finding !== false);
}
