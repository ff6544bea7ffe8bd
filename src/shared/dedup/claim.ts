import { dedupKeyOf, fingerprintOf, type KeyOf, type Message, sequenceRefOf } from '../message.ts';
import { documentId, encodeName, hash } from '../names.ts';
import type { Options } from '../options.ts';
import type { System } from '../ports.ts';
import type { Claim } from './decide.ts';
import type { dedupOptions } from './options.ts';

export type Claimant = {
  /** Whose keys these are; two consumers of one message each handle it once. */
  readonly consumer: string;
  readonly system: System;
  readonly keyOf?: KeyOf;
};

/** What one delivery claims, and under which document id. */
export type DedupClaim = { readonly documentId: string; readonly claim: Claim };

/** Makes the claim of a delivery: computed once and before the handler, which may change its input. */
export function createClaims(
  { consumer, system, keyOf }: Claimant,
  options: Options<typeof dedupOptions>,
): (message: Message) => DedupClaim {
  const scope = encodeName(consumer, 'the consumer');
  return (message) => {
    const key = dedupKeyOf(message, keyOf);
    return {
      documentId: documentId(scope, hash(key)),
      claim: {
        runId: system.randomId(),
        key,
        fingerprint: fingerprintOf(message),
        seqRef: sequenceRefOf(message) ?? null,
        leaseMs: options.leaseMs,
        ttlMs: options.ttlSeconds * 1000,
        maxAttempts: options.maxAttempts,
        seenAtMs: system.clock.nowMs(),
      },
    };
  };
}
