import type { Context } from '../ports.ts';
import type { Verdict } from '../verdict.ts';
import { type Delivery, duplicateOf, type OutcomeParts } from './outcomes.ts';

export type Deliver = (delivery: Delivery, context: Context) => Promise<Verdict>;

/** A copy of a message that this process is already handling waits for that run and makes no store call (protocol 0.10). */
export function createJoining(parts: OutcomeParts, deliver: Deliver): Deliver {
  const running = new Map<string, { readonly delivery: Delivery; readonly verdict: Promise<Verdict> }>();
  return async (delivery, context) => {
    const { documentId, claim } = delivery;
    const identity = `${documentId} ${claim.fingerprint} ${claim.seqRef ? JSON.stringify(claim.seqRef) : ''}`;
    const first = running.get(identity);
    if (!first) {
      const verdict = deliver(delivery, context);
      running.set(identity, { delivery, verdict });
      try {
        return await verdict;
      } finally {
        running.delete(identity);
      }
    }
    const verdict = await first.verdict;
    if (verdict.kind !== 'ack') return verdict;
    // A result to replay stands in the record alone.
    if (parts.replay) return deliver(delivery, context);
    return duplicateOf(parts, { ...first.delivery.claim, result: null, firstSeenAtMs: first.delivery.claim.seenAtMs }, delivery);
  };
}
