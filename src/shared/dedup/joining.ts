import type { Context } from '../ports.ts';
import type { Verdict } from '../verdict.ts';
import type { Claim } from './decide.ts';
import { type Delivery, duplicateOf, type OutcomeParts } from './outcomes.ts';

export type Deliver = (delivery: Delivery, context: Context) => Promise<Verdict>;

type Joined = { readonly delivery: Delivery; readonly verdict: Promise<Verdict> };

/** A copy of a message that this process is already handling waits for that run and makes no store call (protocol 0.10). */
export function createJoining(parts: OutcomeParts, deliver: Deliver): Deliver {
  // No Map: where keys come and go its old tables keep the new ones from the collector; our own CPU of a message was a quarter more.
  const running: Record<string, Joined> = Object.create(null);
  const joined = async (first: Joined, delivery: Delivery, context: Context): Promise<Verdict> => {
    const verdict = await first.verdict;
    if (verdict.kind !== 'ack') return verdict;
    // A result to replay stands in the record alone.
    if (parts.replay) return deliver(delivery, context);
    return duplicateOf(parts, { ...first.delivery.claim, result: null, firstSeenAtMs: first.delivery.claim.seenAtMs }, delivery);
  };
  return (delivery, context) => {
    const { documentId } = delivery;
    const first = running[documentId];
    if (first) return isCopy(first.delivery.claim, delivery.claim) ? joined(first, delivery, context) : deliver(delivery, context);
    const verdict = deliver(delivery, context);
    running[documentId] = { delivery, verdict };
    const forget = () => {
      delete running[documentId];
    };
    verdict.then(forget, forget);
    return verdict;
  };
}

/** Other content, or another number, is for the record to judge. */
const isCopy = (first: Claim, second: Claim): boolean =>
  first.fingerprint === second.fingerprint && JSON.stringify(first.seqRef) === JSON.stringify(second.seqRef);
