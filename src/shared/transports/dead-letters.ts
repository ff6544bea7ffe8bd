import { attribute, dedupKeyOf, forwarded, type Message } from '../message.ts';
import type { DeadLetters, Log, Publisher } from '../ports.ts';

/** An attribute value holds at most 1,024 bytes; a detail is ASCII but for names, so this is short enough. */
const detailChars = 300;

/** Dead letters on a topic: the message as it came, with why and from where. */
export function deadLetterTopic(publisher: Publisher, topic: string): DeadLetters {
  return {
    async publish(message, verdict) {
      const dead = {
        [attribute.deadReason]: verdict.reason,
        [attribute.deadDetail]: verdict.detail.slice(0, detailChars),
        [attribute.deadSource]: message.subscription.slice(0, detailChars),
      };
      await publisher.publish(topic, [forwarded(message, keyOrId(message), dead)]);
    },
  };
}

/** Without a topic a dead letter is rejected: it ends here, and an error in the log says which one and why. */
export function rejectedDeadLetters(log: Log): DeadLetters {
  return {
    async publish({ messageId, subscription }, { reason, detail }) {
      log.error({ messageId, subscription, reason, detail }, 'message rejected: it can never be handled, and no dead-letter topic is set');
    },
  };
}

/** The key itself may be what is wrong. */
function keyOrId(message: Message): string {
  try {
    return dedupKeyOf(message);
  } catch {
    return message.messageId || 'none';
  }
}
