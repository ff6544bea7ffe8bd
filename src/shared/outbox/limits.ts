import { ToolkitError } from '../errors.ts';
import { type OutgoingMessage, sizeOf } from '../message.ts';
import type { Entry } from './decide.ts';

/** A document holds 1 MiB with its names and its own fields (`docs/facts.md` B.8). */
const messageBytes = 1_000_000;
/** Of one attribute, by Pub/Sub (`docs/facts.md` A.3). */
const attributeNameBytes = 256;
const attributeValueBytes = 1_024;

/** A commit holds 500 writes in older clients and 10 MiB in all (`docs/facts.md` B.8); a publish request 1,000 messages and 10 MB. */
const groupMessages = 400;
const groupBytes = 8 * 1024 * 1024;

/** @throws MESSAGE_TOO_LARGE for what neither an entry nor Pub/Sub holds */
export function refuseTooLarge(message: OutgoingMessage): void {
  const bytes = sizeOf(message);
  if (bytes > messageBytes)
    throw new ToolkitError('MESSAGE_TOO_LARGE', `the message takes ${bytes} bytes; an outbox entry holds at most ${messageBytes}`);
  for (const name in message.attributes) {
    const value = message.attributes[name] ?? '';
    // No character takes more than three bytes for each of its units.
    if (name.length * 3 <= attributeNameBytes && value.length * 3 <= attributeValueBytes) continue;
    const [nameBytes, valueBytes] = [Buffer.byteLength(name), Buffer.byteLength(value)];
    if (nameBytes > attributeNameBytes || valueBytes > attributeValueBytes)
      throw new ToolkitError(
        'MESSAGE_TOO_LARGE',
        `attribute ${name.slice(0, 40)} takes ${nameBytes} + ${valueBytes} bytes; at most ${attributeNameBytes} + ${attributeValueBytes} are allowed`,
      );
  }
}

/** How many of the first fit one commit, and one request: one at least. */
export function fitting<T>(items: readonly T[], messageOf: (item: T) => OutgoingMessage | null): number {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    const message = messageOf(item);
    bytes += message ? sizeOf(message) : 0;
    return index === groupMessages || (index > 0 && bytes > groupBytes);
  });
  return end === -1 ? items.length : end;
}

/**
 * Neighbours that may share a request: one topic and one ordering key, since the service refuses two keys in one.
 * Each run fits a request.
 */
export function requestsOf<T>(items: readonly T[], entryOf: (item: T) => Pick<Entry, 'topic' | 'message'>): T[][] {
  const requests: T[][] = [];
  for (let start = 0; start < items.length; ) {
    const run = items.slice(start, start + groupMessages);
    const place = run[0] && placeOf(entryOf(run[0]));
    const other = run.findIndex((item) => placeOf(entryOf(item)) !== place);
    const alike = other === -1 ? run : run.slice(0, other);
    const request = alike.slice(
      0,
      fitting(alike, (item) => entryOf(item).message),
    );
    requests.push(request);
    start += request.length;
  }
  return requests;
}

/** Where a message goes: only messages of one place share a request. */
export const placeOf = ({ topic, message }: Pick<Entry, 'topic' | 'message'>): string => `${topic} ${message?.orderingKey ?? ''}`;
