import { hash as digest } from 'node:crypto';
import { malformed } from './errors.ts';

/** Lower-case hex SHA-256 of the UTF-8 text (**wire**: document ids are made of it). */
export const hash = (text: string): string => digest('sha256', text);

/** Firestore's limit for a document id, in bytes (`docs/facts.md` B.8). */
const documentIdBytes = 1_500;

/**
 * A name as part of a document id (**wire**): `encodeURIComponent`, with `.`, `~` and `_` encoded too, so that `~` can
 * separate parts and no id is reserved.
 * @throws MALFORMED_MESSAGE for an empty name or a lone surrogate
 */
export function encodeName(name: string, what: string): string {
  if (name === '') throw malformed(`${what} is empty`);
  if (!name.isWellFormed()) throw malformed(`${what} holds a lone surrogate`);
  return encodeURIComponent(name).replace(/[.~_]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/**
 * A document id of encoded parts.
 * @throws MALFORMED_MESSAGE when it is too long
 */
export function documentId(...parts: readonly string[]): string {
  const id = parts.join('~');
  if (id.length > documentIdBytes) throw malformed(`a document id of ${id.length} bytes is needed; at most ${documentIdBytes} are allowed`);
  return id;
}

export const shards = 16;
/** Queries of many processes can be spread over these (**wire**). */
export const shardOf = (name: string): number => Number.parseInt(hash(name).slice(0, 2), 16) % shards;
