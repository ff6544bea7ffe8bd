import { ToolkitError } from '../errors.ts';
import { dedupKeyOf, fingerprintOf, type KeyOf, type Message, originIdOf, sequenceRefOf } from '../message.ts';
import { encodeName, hash } from '../names.ts';
import type { Options } from '../options.ts';
import type { System } from '../ports.ts';
import type { Claim } from './decide.ts';
import type { dedupOptions } from './options.ts';

export type Claimant = {
  /** Whose keys these are; two consumers of one message each handle it once. */
  readonly consumer: string;
  readonly system: System;
  /** `external`: a run that died is not simply run again. */
  readonly effects?: 'internal' | 'external';
};

/** How a message is told from others. */
export type Reading = {
  readonly keyOf?: KeyOf;
  /** What two messages of one key must agree in; by default data and the user's attributes, byte for byte. */
  readonly fingerprintOf?: (message: Message) => string;
};

/** What one run claims, and under which document id, which ends in the key's digest. */
export type DedupClaim = { readonly documentId: string; readonly keyHash: string; readonly claim: Claim };
/** What is claimed: a key, what stands under it, and where it came from. */
export type Claimed = Pick<Claim, 'key' | 'fingerprint'> & Partial<Pick<Claim, 'seqRef' | 'messageId' | 'originId'>>;

/** A consumer's name is part of every document id and of a dead letter's attribute. */
const consumerBytes = 256;

/**
 * Makes the claims of a consumer's runs, each with an id of its own; in a later round a key is a new one.
 * @throws INVALID_SETTINGS for a consumer that has no name or too long a one
 */
export function createClaims(
  { consumer, system, effects = 'internal' }: Claimant,
  { leaseMs, ttlSeconds, maxAttempts }: Pick<Options<typeof dedupOptions>, 'leaseMs' | 'ttlSeconds' | 'maxAttempts'>,
): (claimed: Claimed, round?: number) => DedupClaim {
  const scope = consumerScope(consumer);
  return ({ key, fingerprint, seqRef = null, messageId = '', originId = messageId }, round = 0) => {
    const keyHash = hash(key);
    return {
      documentId: round === 0 ? `${scope}~${keyHash}` : `${scope}~${keyHash}~${round}`,
      keyHash,
      claim: {
        runId: system.randomId(),
        key,
        fingerprint,
        seqRef,
        messageId,
        originId,
        leaseMs,
        ttlMs: ttlSeconds * 1000,
        maxAttempts,
        effects,
        seenAtMs: system.clock.nowMs(),
      },
    };
  };
}

/**
 * What a delivery claims: computed once and before the handler, which may change its input.
 * @throws KEY_MISSING, MALFORMED_MESSAGE
 */
export function claimedBy(message: Message, { keyOf, fingerprintOf: fingerprint = fingerprintOf }: Reading): Claimed {
  return {
    key: dedupKeyOf(message, keyOf),
    fingerprint: fingerprint(message),
    seqRef: sequenceRefOf(message) ?? null,
    messageId: message.messageId,
    originId: originIdOf(message),
  };
}

export const unreadableRecord = (documentId: string, found: string): ToolkitError =>
  new ToolkitError('RECORD_UNREADABLE', `the record ${documentId} is of ${found}; this version reads format 1`);

/**
 * A consumer's name as the first part of its document ids.
 * @throws INVALID_SETTINGS
 */
export function consumerScope(consumer: string): string {
  const isName = typeof consumer === 'string' && consumer !== '' && consumer.isWellFormed();
  const scope = isName ? encodeName(consumer, 'the consumer') : '';
  if (scope !== '' && scope.length <= consumerBytes) return scope;
  const why = isName ? `takes ${scope.length} bytes encoded; at most ${consumerBytes} are allowed` : 'is empty or no well-formed text';
  throw new ToolkitError('INVALID_SETTINGS', `the consumer's name ${why}`);
}
