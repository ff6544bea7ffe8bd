import { dueOf } from './delay/due.ts';
import { malformed } from './errors.ts';
import { attribute, type OutgoingMessage } from './message.ts';
import type { Publisher, System } from './ports.ts';

export type Draft = {
  readonly data: Uint8Array;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly orderingKey?: string;
  /** Of the logical message. Give your own (an order's id, say) where you may publish again after an error. */
  readonly key?: string;
  readonly deliverAtMs?: number;
  readonly delayMs?: number;
};

/** Pub/Sub allows 100 attributes; the toolkit needs room for its own on every hop. */
const ownAttributes = 85;

/**
 * A draft with its key and its due instant, made before the first try, so that every copy of it carries the same ones.
 * @throws MALFORMED_MESSAGE
 */
export function stamped({ data, orderingKey, ...draft }: Draft, { clock, randomId }: System): OutgoingMessage {
  const own = Object.keys(draft.attributes ?? {}).length;
  if (own > ownAttributes) throw malformed(`the message has ${own} attributes; at most ${ownAttributes} are allowed`);
  const given = { ...draft.attributes, ...dueAttributes(draft) };
  const key = draft.key ?? given[attribute.key] ?? randomId();
  if (key.trim() === '' || !key.isWellFormed()) throw malformed('the key of the message is empty or no well-formed text');
  const due = dueOf({ attributes: given, publishTimeMs: clock.nowMs() });
  const { [attribute.delayMs]: _, ...attributes } = given;
  return {
    data,
    attributes: { ...attributes, [attribute.key]: key, ...(due && { [attribute.deliverAt]: new Date(due.dueAtMs).toISOString() }) },
    ...(orderingKey && { orderingKey }),
  };
}

function dueAttributes({ deliverAtMs, delayMs }: Pick<Draft, 'deliverAtMs' | 'delayMs'>): Record<string, string> {
  if (delayMs !== undefined) return { [attribute.delayMs]: String(Math.ceil(delayMs)) };
  if (deliverAtMs === undefined) return {};
  const atMs = new Date(Math.ceil(deliverAtMs));
  if (Number.isNaN(atMs.getTime())) throw malformed(`deliverAtMs is ${deliverAtMs}; it must be an instant in ms`);
  return { [attribute.deliverAt]: atMs.toISOString() };
}

/** Publishes to one topic; the service's retries and yours (with the same `key`) are one message to `dedup`. */
export function createPublisher(parts: {
  publisher: Publisher;
  topic: string;
  system: System;
}): (draft: Draft) => Promise<{ messageId: string; key: string }> {
  return async (draft) => {
    const message = stamped(draft, parts.system);
    const [messageId = ''] = await parts.publisher.publish(parts.topic, [message]);
    return { messageId, key: message.attributes[attribute.key] ?? '' };
  };
}
