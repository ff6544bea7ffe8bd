import type { Finding, SubscriptionFacts } from '../dedup/subscription-check.ts';

export type FifoSubscriptionRules = { readonly early: 'park' | 'nack'; readonly leaseMs: number };

/**
 * Whether early messages may wait on a subscription as they are to (protocol 4.9), and whether its dead-letter policy could take the head of a
 * stream away while its holder's lease runs out, which would be a gap (protocol 4.7).
 */
export function checkFifoSubscription(
  { ordering, isPush, maxDeliveryAttempts, retryPolicy }: SubscriptionFacts,
  { early, leaseMs }: FifoSubscriptionRules,
): Finding[] {
  const findings: Finding[] = [];
  const refuse = (text: string) => findings.push({ level: 'refuse', text });
  if (ordering && isPush)
    refuse('message ordering is on; on push an early message that is given back stays in front of its predecessor for ever');
  if (ordering && !isPush && early === 'nack') {
    refuse('message ordering is on; an early message that is given back stays in front of its predecessor for ever, so early must be park');
  }
  if (maxDeliveryAttempts === undefined) return findings;
  const leastMs = maxDeliveryAttempts * (retryPolicy?.minimumSeconds ?? 0) * 1_000;
  const attempts = `a dead-letter policy after ${maxDeliveryAttempts} attempts`;
  if (early === 'nack' && maxDeliveryAttempts < 100) {
    refuse(`${attempts} would take early messages that are given back; 100 attempts are the least, or early must be park`);
  }
  if (leastMs <= leaseMs) {
    const text = `${attempts} may take the head of a stream within ${leastMs} ms, while a lease of ${leaseMs} ms runs out; none is advised`;
    findings.push({ level: 'warn', text });
  }
  return findings;
}
