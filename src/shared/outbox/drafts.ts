import { malformed } from '../errors.ts';
import { attribute } from '../message.ts';
import { documentId, encodeName } from '../names.ts';
import type { System } from '../ports.ts';
import { type Draft, stamped } from '../publishing.ts';
import type { Unnumbered } from './decide.ts';
import { refuseTooLarge } from './limits.ts';

/** What a publisher wants of all its messages. */
export type Wishes = {
  /** `stream`: the native ordering key is the stream's name, for subscribers that pull and park. */
  readonly orderingKey?: 'stream';
  /** The entries keep their messages once they are published, so that a lost one can be published again. */
  readonly keepBodies?: boolean;
};

export type SequencedDraft = Draft & { readonly stream: string; readonly topic: string };
/** With a stream: after what was added to that stream before, and before what is added later. */
export type OutboxDraft = Draft & { readonly topic: string; readonly stream?: string };

/** @throws MALFORMED_MESSAGE, MESSAGE_TOO_LARGE before anything is numbered */
export function sequenced({ stream, topic, ...draft }: SequencedDraft, system: System, wishes: Wishes): Unnumbered {
  documentId(encodeName(stream, attribute.stream));
  // The attribute that will carry it is as limited as the others.
  const unnumbered = outgoing({ topic, ...draft }, system, wishes, { [attribute.stream]: stream });
  const { message } = unnumbered;
  return { ...unnumbered, stream, message: wishes.orderingKey ? { ...message, orderingKey: stream } : message };
}

/** The same for a message whose number, if it gets one, does not go out. */
export function plain({ stream, topic, ...draft }: OutboxDraft, system: System, wishes: Wishes): Unnumbered {
  if (stream !== undefined) documentId(encodeName(stream, 'the stream'));
  return { ...outgoing({ topic, ...draft }, system, wishes), stream: stream ?? '', plain: true };
}

function outgoing(
  { topic, ...draft }: Draft & { readonly topic: string },
  system: System,
  { keepBodies }: Wishes,
  more: Readonly<Record<string, string>> = {},
): Omit<Unnumbered, 'stream'> {
  if (topic === '') throw malformed('the topic of the message is empty');
  const message = stamped(draft, system);
  refuseTooLarge({ ...message, attributes: { ...message.attributes, ...more } });
  return { key: message.attributes[attribute.key] ?? '', topic, message, ...(keepBodies && { keepBody: true }) };
}

/**
 * In a transaction that runs again, also after a commit whose answer was lost, a key that is made there would be another one.
 * @throws MALFORMED_MESSAGE
 */
export function requireKey({ key, attributes }: Draft): void {
  if (key === undefined && attributes?.[attribute.key] === undefined)
    throw malformed('a message that is written in a transaction needs a key of its own: the transaction may run more than once');
}
