import { consumerScope } from '../../shared/dedup/claim.ts';
import type { Evidence } from '../../shared/dedup/outcomes.ts';
import { attribute } from '../../shared/message.ts';
import { documentId } from '../../shared/names.ts';
import type { Letter } from './letter-box.ts';

/** A letter that dedup wrote about a key, and that an operator can decide. */
export type Case = {
  readonly letter: Letter;
  readonly evidence: Evidence;
  /** Of the record in question. */
  readonly documentId: string;
  readonly key: string;
  /** Full name of the subscription that the message came from. */
  readonly source: string;
};

const decidable: readonly (string | undefined)[] = ['conflict', 'abandoned'];
const digest = /^[\da-f]{64}$/;

/** Undefined: the letter is about something else. */
export function caseOf(letter: Letter): Case | undefined {
  const { attributes } = letter.message;
  if (!decidable.includes(attributes[attribute.deadReason])) return undefined;
  try {
    const evidence = checkedEvidence(JSON.parse(attributes[attribute.deadDetail] ?? ''));
    return {
      letter,
      evidence,
      documentId: documentId(consumerScope(evidence.consumer), evidence.keyHash),
      key: attributes[attribute.key] ?? '',
      source: attributes[attribute.deadSource] ?? '',
    };
  } catch {
    // Written by something else: no JSON, or no names in it.
    return undefined;
  }
}

function checkedEvidence({ consumer, keyHash, fingerprint, stored, firstSeenAt }: Evidence): Evidence {
  const isWhole = [consumer, fingerprint, stored, firstSeenAt].every((text) => typeof text === 'string') && digest.test(keyHash);
  if (!isWhole) throw new Error('no evidence');
  return { consumer, keyHash, fingerprint, stored, firstSeenAt };
}
