import { hash as digest } from 'node:crypto';
import { documentId, encodeName } from './names.ts';
import type { PayloadRef } from './ports.ts';

/** A document holds 1 MiB with its names and its other fields (`docs/facts.md` B.8); every chunk but the last has this size (**wire**). */
export const chunkBytes = 1_000_000;

/** What names these bytes from now on. An id belongs to one payload. */
export const payloadRef = (id: string, bytes: Uint8Array): PayloadRef => ({ id, bytes: bytes.length, sha256: digest('sha256', bytes) });

/** Whether these are the bytes that the reference tells. */
export const isPayload = (ref: PayloadRef, bytes: Uint8Array): boolean =>
  bytes.length === ref.bytes && digest('sha256', bytes) === ref.sha256;

/** An empty payload is one empty chunk. */
export const chunksOf = (ref: PayloadRef): number => Math.max(1, Math.ceil(ref.bytes / chunkBytes));

/**
 * The document id of a chunk, counted from 0 (**wire**).
 * @throws MALFORMED_MESSAGE for an id that is empty, holds a lone surrogate or is too long
 */
export const chunkId = (ref: PayloadRef, chunk: number): string => documentId(encodeName(ref.id, 'the id of a payload'), String(chunk));
