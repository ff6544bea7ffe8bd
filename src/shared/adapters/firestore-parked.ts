import type { DocumentData } from '@google-cloud/firestore';
import { ToolkitError } from '../errors.ts';
import { cursorKeyOf, type Parked, type Place } from '../fifo/store.ts';
import type { Message } from '../message.ts';
import { documentId, hash, shardOf } from '../names.ts';
import type { Clock } from '../ports.ts';
import { fieldsOf } from './firestore.ts';

/** A document holds 1 MiB with its names and its own fields (`docs/facts.md` B.8). */
const messageBytes = 1_000_000;

/** Numbers of one length, as ids are sorted as texts (**wire**). */
export const parkedId = ({ consumer, stream, epoch, seq }: Place): string =>
  documentId(hash(cursorKeyOf(consumer, stream)), String(epoch), String(seq).padStart(16, '0'));

export function parkedFields(parked: Parked, clock: Pick<Clock, 'nowMs'>): Record<string, unknown> {
  const { message, ...fields } = parked;
  const bytes = message.data.length + Buffer.byteLength(JSON.stringify(message.attributes));
  if (bytes > messageBytes)
    throw new ToolkitError('MESSAGE_TOO_LARGE', `number ${parked.seq} takes ${bytes} bytes; a parked message may take ${messageBytes}`);
  const { publishTimeMs = null, deliveryAttempt: _, ...kept } = message;
  return {
    ...fieldsOf(fields, clock, 'forever'),
    shard: shardOf(parked.stream),
    message: { ...kept, data: Buffer.from(message.data), publishTimeMs },
  };
}

export function messageOf({ message }: DocumentData): Message {
  const { publishTimeMs, ...kept } = message as Omit<Message, 'publishTimeMs'> & { readonly publishTimeMs: number | null };
  return { ...kept, publishTimeMs: publishTimeMs ?? undefined, deliveryAttempt: undefined };
}
