import { hash as digest } from 'node:crypto';
import { errorCodeOf, malformed } from './errors.ts';

/** A delivery as every layer sees it, whatever brought it. */
export type Message = {
  /** Given by the service; another one for each publish try. */
  readonly messageId: string;
  readonly data: Uint8Array;
  readonly attributes: Readonly<Record<string, string>>;
  readonly orderingKey: string;
  /** `undefined` when the service gave none, or 1970. */
  readonly publishTimeMs: number | undefined;
  /** Full name, `projects/P/subscriptions/S`. */
  readonly subscription: string;
  /** From 1; only with a dead-letter policy on the subscription. */
  readonly deliveryAttempt: number | undefined;
};

/** What is published: all that survives a hop. */
export type OutgoingMessage = {
  readonly data: Uint8Array;
  readonly attributes: Readonly<Record<string, string>>;
  readonly orderingKey?: string;
};

/** Attribute names (**wire**). */
export const attribute = {
  key: 'ptk-key',
  stream: 'ptk-stream',
  sequence: 'ptk-seq',
  epoch: 'ptk-epoch',
  tombstone: 'ptk-tombstone',
  deliverAt: 'ptk-deliver-at',
  delayMs: 'ptk-delay-ms',
  delayId: 'ptk-delay-id',
  delayCount: 'ptk-delay-count',
  delayPasses: 'ptk-delay-passes',
  target: 'ptk-target',
  originId: 'ptk-origin-id',
  originTime: 'ptk-origin-time',
  deadReason: 'ptk-dead-reason',
  deadDetail: 'ptk-dead-detail',
  deadSource: 'ptk-dead-source',
} as const;

/** Undefined: the message has none of its own. @throws KEY_MISSING where there must be one */
export type KeyOf = (message: Message) => string | undefined;

/** A key is stamped as an attribute on the next hop, and an attribute value holds 1,024 bytes (`docs/facts.md` A.3). */
const keyBytes = 1_024;

/**
 * What makes two deliveries the same message to one consumer: the user's own key, else `ptk-key`, else CloudEvents source
 * and id, else subscription and message id (an id is unique per topic only). One that is too long for an attribute is replaced
 * by its digest.
 * @throws MALFORMED_MESSAGE for a key that is present and empty or no well-formed text
 */
export function dedupKeyOf(message: Message, keyOf?: KeyOf): string {
  const { attributes } = message;
  const own = keyOf && ownKeyOf(message, keyOf);
  if (own !== undefined) return checkedKey(own, 'the key made by keyOf');
  const stamped = attributes[attribute.key];
  if (stamped !== undefined) return checkedKey(stamped, attribute.key);
  const source = attributes['ce-source'];
  const id = attributes['ce-id'];
  // A source is a URI reference and so holds no space: the pair cannot be mistaken for another one.
  if (source !== undefined && id !== undefined) return checkedKey(`${source} ${id}`, 'ce-source with ce-id');
  return `${message.subscription}/${checkedKey(message.messageId, 'messageId')}`;
}

/** The dedup key, or the message id where the key itself is what is wrong. */
export function keyOrIdOf(message: Message): string {
  try {
    return dedupKeyOf(message);
  } catch {
    return message.messageId || 'none';
  }
}

/** What a user's function throws may quote the payload, so only its name is told. */
function ownKeyOf(message: Message, keyOf: KeyOf): string | undefined {
  try {
    return keyOf(message);
  } catch (error) {
    if (errorCodeOf(error)) throw error;
    throw new Error(`keyOf threw ${error instanceof Error ? error.name : 'no error'}`, { cause: error });
  }
}

/** @throws MALFORMED_MESSAGE for one that is empty or no well-formed text */
export function checkedKey(key: string, what: string): string {
  if (typeof key !== 'string') throw malformed(`${what} is no text`);
  if (key.trim() === '') throw malformed(`${what} is empty`);
  if (!key.isWellFormed()) throw malformed(`${what} holds a lone surrogate`);
  return key.length * 3 > keyBytes && Buffer.byteLength(key) > keyBytes ? `sha256:${digest('sha256', key)}` : key;
}

/** Where a message stands in its stream. */
export type SequenceRef = { readonly stream: string; readonly epoch: number; readonly sequence: number };

/**
 * The place of a message in its stream; `undefined` for a message without a stream, which is not sequenced.
 * @throws MALFORMED_MESSAGE for a stream without a usable number or epoch
 */
export function sequenceRefOf({ attributes }: Pick<Message, 'attributes'>): SequenceRef | undefined {
  const stream = attributes[attribute.stream];
  if (stream === undefined) {
    if (attributes[attribute.sequence] !== undefined) throw malformed(`${attribute.sequence} is set without ${attribute.stream}`);
    return undefined;
  }
  if (stream === '') throw malformed(`${attribute.stream} is empty`);
  const sequence = wholeNumber(attributes, attribute.sequence);
  if (sequence < 1) throw malformed(`${attribute.sequence} is 0; numbers begin at 1`);
  return { stream, epoch: wholeNumber(attributes, attribute.epoch), sequence };
}

/** Decimal, without sign or leading zero, at most 2^53-1: `"1e3"`, `"+1"` and `"01"` are refused. */
function wholeNumber(attributes: Message['attributes'], name: string): number {
  const text = attributes[name];
  if (text === undefined) throw malformed(`${name} is missing beside ${attribute.stream}`);
  const value = /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value))
    throw malformed(`${name} is ${JSON.stringify(text.slice(0, 40))}; it must be a decimal number up to 2^53-1`);
  return value;
}

const notTheUsers = /^(ptk-|CloudPubSubDeadLetter|googclient_|traceparent$|tracestate$)/;

/** A digest of its own costs less than a text, from here on. */
const textBytes = 1_024;

/** Digest of the user's own attributes and data: two messages under one key must agree in it. */
export function fingerprintOf({ data, attributes }: Pick<Message, 'data' | 'attributes'>): string {
  const own: [string, string][] = [];
  for (const entry of Object.entries(attributes)) if (!notTheUsers.test(entry[0])) own.push(entry);
  if (own.length > 1) own.sort(([a], [b]) => (a < b ? -1 : 1));
  const body = data.length > textBytes ? `#${digest('sha256', data)}` : `=${latin1(data)}`;
  // The attributes first: where their array ends is plain, whatever the data is.
  return digest('sha256', `${own.length === 0 ? '[]' : JSON.stringify(own)}${body}`);
}

/** A character for each byte. */
const latin1 = (data: Uint8Array): string =>
  (Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength)).toString('latin1');

/** The id of the first publication, kept over every hop. */
export const originIdOf = ({ messageId, attributes }: Message): string => attributes[attribute.originId] ?? messageId;

/** From the trace context that the publisher's tracing put into the message; for logs. */
export function traceIdOf({ attributes }: Message): string | undefined {
  const parent = attributes.traceparent ?? attributes.googclient_traceparent;
  return parent === undefined ? undefined : /^[\da-f]{2}-([\da-f]{32})-/.exec(parent)?.[1];
}

/** Of a message, and of a request to publish, by Pub/Sub (`docs/facts.md` A.3). */
export const mostMessageBytes = 10_000_000;

/** What Pub/Sub counts of a message, in bytes. */
export function sizeOf({ data, attributes, orderingKey = '' }: OutgoingMessage): number {
  let bytes = data.length + Buffer.byteLength(orderingKey);
  for (const name in attributes) bytes += Buffer.byteLength(name) + Buffer.byteLength(attributes[name] ?? '');
  return bytes;
}

/** What takes a number's place in its stream when the message that had it ends here. */
export function tombstoneOf(message: Message, key: string, reason: string): OutgoingMessage {
  const { attributes, orderingKey } = forwarded(message, key, { [attribute.tombstone]: reason });
  const ours = Object.fromEntries(Object.entries(attributes).filter(([name]) => name.startsWith('ptk-')));
  return { data: new Uint8Array(), attributes: ours, ...(orderingKey !== undefined && { orderingKey }) };
}

/** The message for its next hop: key and origin are stamped once and then stay. */
export function forwarded(message: Message, key: string, extra: Readonly<Record<string, string>> = {}): OutgoingMessage {
  const origin: Record<string, string> = { [attribute.key]: key, [attribute.originId]: message.messageId };
  if (message.publishTimeMs !== undefined) origin[attribute.originTime] = new Date(message.publishTimeMs).toISOString();
  return {
    data: message.data,
    attributes: { ...origin, ...message.attributes, ...extra },
    ...(message.orderingKey !== '' && { orderingKey: message.orderingKey }),
  };
}
