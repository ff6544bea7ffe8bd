/**
 * Every error of the toolkit by its code, and what becomes of the message in whose handling it is thrown. Expected outcomes
 * (duplicate, early, in progress) are verdicts and not errors. An error that is not listed came from the user's handler: nack.
 */
export const errorCodes = {
  MALFORMED_MESSAGE: { fate: 'deadLetter', about: 'An attribute or body breaks the wire contract; no retry can mend it.' },
  KEY_MISSING: { fate: 'deadLetter', about: 'The message has no key where its consumer looks for one.' },
  MESSAGE_TOO_LARGE: { fate: 'deadLetter', about: 'A limit of Pub/Sub, Firestore or Cloud Tasks is passed.' },
  LEDGER_MISSING: { fate: 'deadLetter', about: 'Somebody deleted the ledger entry of a delayed message.' },
  PAYLOAD_MISSING: { fate: 'deadLetter', about: 'The stored body of a delayed message is gone, or is not what was stored.' },
  REFUSED: { fate: 'deadLetter', about: 'A service refused the request for good.' },
  STORE_UNAVAILABLE: { fate: 'nack', about: 'The record store did not answer in time, or answered an error that may pass.' },
  RECORD_UNREADABLE: { fate: 'nack', about: 'What is stored under the key is no record that this version reads.' },
  IN_PROGRESS: { fate: 'nack', about: 'Another run holds the key.' },
  LEASE_LOST: { fate: 'nack', about: 'Another run took the key over, so the end of this one is not recorded.' },
  KEY_CONFLICT: { fate: 'deadLetter', about: 'Other work is done under this key.' },
  OUTCOME_UNKNOWN: { fate: 'deadLetter', about: 'A run with effects outside died, and nobody could say whether it had them.' },
  SERVICE_UNAVAILABLE: {
    fate: 'nack',
    about: 'Pub/Sub, Cloud Tasks or a sink did not answer in time, or answered an error that may pass.',
  },
  STREAM_CONTENDED: { fate: 'nack', about: 'Too many publishers number one stream at once; nothing was numbered.' },
  INVALID_SETTINGS: { fate: 'exit', about: 'A setting is missing, unknown or out of range; found at start.' },
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** Told apart by `code`, never by `instanceof`: two copies of the package may be loaded. */
export class ToolkitError extends Error {
  readonly code: ErrorCode;
  /** With IN_PROGRESS: when the other run's lease is over. */
  readonly retryAfterMs?: number;
  constructor(code: ErrorCode, message: string, cause?: unknown, retryAfterMs?: number) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ToolkitError';
    this.code = code;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

export function errorCodeOf(error: unknown): ErrorCode | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : undefined;
}

export const malformed = (message: string): ToolkitError => new ToolkitError('MALFORMED_MESSAGE', message);

/** Text for logs; error messages of the toolkit hold no payload. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
