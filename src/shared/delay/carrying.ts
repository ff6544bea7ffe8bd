import { ToolkitError } from '../errors.ts';
import { mostMessageBytes, type OutgoingMessage, sizeOf } from '../message.ts';
import { hash } from '../names.ts';
import { payloadRef } from '../payload.ts';
import type { PayloadRef, PayloadStore } from '../ports.ts';
import { type Carried, decodePayload, encodePayload } from './task-body.ts';

/** What its release adds: how often it was delayed, and the due time to the key of an occurrence. */
const addedBytes = 64;
/** A task with an App Engine target holds 100 KB in all (`docs/facts.md` C.4); the rest of its body takes up to 5 KB. */
const carriedBytes = 85_000;
/** Beyond the due time: a task is tried for 31 days. */
const keepAfterDueMs = 45 * 86_400_000;

/** How long from now what is due then is kept: one that was due long ago has its tries before it, too. */
export const keepMsUntil = (dueAtMs: number, nowMs: number): number => Math.max(dueAtMs - nowMs, 0) + keepAfterDueMs;

/** Firestore keeps names of this form for itself. */
const reservedName = /^__.*__$/s;

/**
 * The message as a task and a document carry it: itself, or a reference to where it was put.
 * @param name of what is delayed: the same message under the same name is put to the same place
 * @throws MESSAGE_TOO_LARGE, STORE_UNAVAILABLE
 */
export async function carry(
  payloads: PayloadStore | undefined,
  message: OutgoingMessage,
  name: readonly (string | number)[],
  keepMs: number,
): Promise<Carried> {
  const bytes = sizeOf(message) + addedBytes;
  if (bytes > mostMessageBytes)
    throw tooLarge(`the message takes ${bytes} bytes as it is released; at most ${mostMessageBytes} can be published`);
  const head = JSON.stringify(message.attributes);
  const encodedBytes = Math.ceil(message.data.length / 3) * 4 + Buffer.byteLength(head);
  if (encodedBytes <= carriedBytes && !Object.keys(message.attributes).some((attribute) => reservedName.test(attribute)))
    return { message };
  if (!payloads) throw tooLarge(`the message takes ${encodedBytes} bytes in a task; at most ${carriedBytes} fit without a payload store`);
  const encoded = encodePayload(message);
  const payload = payloadRef(hash(JSON.stringify(name)), encoded);
  await payloads.put(payload, encoded, keepMs);
  return { payload };
}

const missing = ({ id, bytes }: PayloadRef) =>
  new ToolkitError('PAYLOAD_MISSING', `the payload ${id} of ${bytes} bytes is not stored, or is not what was`);
const tooLarge = (message: string) => new ToolkitError('MESSAGE_TOO_LARGE', message);

/**
 * The message that is carried.
 * @throws PAYLOAD_MISSING, STORE_UNAVAILABLE, MALFORMED_MESSAGE
 */
export async function uncarried(payloads: PayloadStore | undefined, carried: Carried): Promise<OutgoingMessage> {
  if ('message' in carried) return carried.message;
  const { payload } = carried;
  const bytes = await payloads?.get(payload);
  if (!bytes) throw missing(payload);
  return decodePayload(bytes);
}

/**
 * Stored bytes kept for at least so long from now.
 * @throws PAYLOAD_MISSING, STORE_UNAVAILABLE
 */
export async function keepLonger(payloads: PayloadStore, payload: PayloadRef, keepMs: number): Promise<void> {
  const bytes = await payloads.get(payload);
  if (!bytes) throw missing(payload);
  await payloads.put(payload, bytes, keepMs);
}
