import type { Verdict } from '../verdict.ts';
import { type Delivery, duplicateOf, type OutcomeParts } from './outcomes.ts';

type Deliver = (delivery: Delivery) => Promise<Verdict>;

type Joined = { readonly delivery: Delivery; readonly verdict: Promise<Verdict> };

/** A copy of a message that this process is already handling waits for that run and makes no store call (protocol 0.10). */
export function createJoining(parts: OutcomeParts, deliver: Deliver): Deliver {
  // No Map, whose old tables keep the new ones from the collector where entries come and go, and no texts as keys, which V8 interns.
  const running: Record<number, Joined> = Object.create(null);
  const joined = async (first: Joined, delivery: Delivery): Promise<Verdict> => {
    const verdict = await first.verdict;
    if (verdict.kind !== 'ack') return verdict;
    // A result to replay stands in the record alone.
    if (parts.replay) return await deliver(delivery);
    return await duplicateOf(parts, { ...first.delivery.claim, result: null, firstSeenAtMs: first.delivery.claim.seenAtMs }, delivery);
  };
  return (delivery) => {
    const slot = slotOf(delivery);
    const first = running[slot];
    if (first) return isCopy(first.delivery, delivery) ? joined(first, delivery) : deliver(delivery);
    const verdict = deliver(delivery);
    running[slot] = { delivery, verdict };
    const forget = () => {
      delete running[slot];
    };
    verdict.then(forget, forget);
    return verdict;
  };
}

/** A number for a key, of its digest's beginning: of two keys that meet in one, the second goes its own way. */
function slotOf({ keyHash }: Delivery): number {
  let slot = 0;
  for (let at = 0; at < 8; at++) slot = (slot * 31 + keyHash.charCodeAt(at)) & 0x3fffffff;
  return slot;
}

/** Other content, or another number, is for the record to judge. */
const isCopy = (first: Delivery, second: Delivery): boolean =>
  first.documentId === second.documentId &&
  first.claim.fingerprint === second.claim.fingerprint &&
  JSON.stringify(first.claim.seqRef) === JSON.stringify(second.claim.seqRef);
