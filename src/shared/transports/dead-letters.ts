import { attribute, forwarded, keyOrIdOf, type Message, mostMessageBytes, sizeOf } from '../message.ts';
import type { DeadLetters, Log, Publisher } from '../ports.ts';

/** Of an attribute's value, by Pub/Sub (`docs/facts.md` A.3). */
const valueBytes = 1_024;
/** Of a message, by Pub/Sub (`docs/facts.md` A.3). */
const mostAttributes = 100;

/** Dead letters on a topic: the message as it came, with why and from where. */
export function deadLetterTopic(publisher: Publisher, topic: string): DeadLetters {
  return {
    async publish(message, verdict) {
      const dead = {
        [attribute.deadReason]: verdict.reason,
        [attribute.deadDetail]: fittingValue(verdict.detail),
        [attribute.deadSource]: fittingValue(message.subscription),
      };
      const letter = forwarded(message, verdict.key ?? keyOrIdOf(message), dead);
      await publisher.publish(topic, [{ ...letter, attributes: withinSize(message, fitting(letter.attributes)) }]);
    },
  };
}

/** Cut between two characters: a stream's decoder waits for the rest of one that is cut, which never comes. */
function fittingValue(text: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.from(text).subarray(0, valueBytes), { stream: true });
}

/** A message full of attributes leaves no room for the reason: then the last of its own stay behind, or it could never be stored. */
function fitting(attributes: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(attributes);
  const ours = entries.filter(([name]) => name.startsWith('ptk-'));
  const own = entries.filter(([name]) => !name.startsWith('ptk-'));
  return Object.fromEntries([...own.slice(0, mostAttributes - ours.length), ...ours].map(([name, value]) => [name, fittingValue(value)]));
}

/** What is added to a message, the most needed first. */
const added = [attribute.deadReason, attribute.key, attribute.deadSource, attribute.originId, attribute.originTime, attribute.deadDetail];

/** A message that is as large as one may be was published as it came, and so can be stored; of what is added as much as there is room for. */
function withinSize(message: Message, attributes: Record<string, string>): Record<string, string> {
  const fits = (some: Record<string, string>) => sizeOf({ ...message, attributes: some }) <= mostMessageBytes;
  if (fits(attributes)) return attributes;
  let kept: Record<string, string> = Object.fromEntries(Object.entries(message.attributes).filter(([name]) => name in attributes));
  for (const name of added) {
    const value = attributes[name];
    if (value !== undefined && fits({ ...kept, [name]: value })) kept = { ...kept, [name]: value };
  }
  return kept;
}

/** Without a topic a dead letter is rejected: it ends here, and an error in the log says which one and why. */
export function rejectedDeadLetters(log: Log): DeadLetters {
  return {
    async publish({ messageId, subscription }, { reason, detail }) {
      log.error({ messageId, subscription, reason, detail }, 'message rejected: it can never be handled, and no dead-letter topic is set');
    },
  };
}
