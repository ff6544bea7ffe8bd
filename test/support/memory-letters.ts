import type { Letter, LetterBox } from '../../src/cli/redrive/letter-box.ts';
import type { Publisher } from '../../src/shared/ports.ts';

/** Dead letters of this process: a topic to publish them, and the box that hands them out as long as they are not acked. */
export type MemoryLetters = LetterBox & {
  readonly topic: Publisher;
  kept(): readonly Letter[];
  /** How many were given back last. */
  released(): number;
};

export function memoryLetters(): MemoryLetters {
  const letters = new Map<string, Letter>();
  const pulled = new Set<string>();
  let released = 0;
  let ids = 0;
  return {
    topic: {
      publish: async (_topic, messages) =>
        messages.map((message) => {
          const messageId = `letter-${++ids}`;
          letters.set(messageId, { ackId: messageId, messageId, message });
          return messageId;
        }),
    },
    kept: () => [...letters.values()],
    released: () => released,
    async pull(most) {
      const free = [...letters.values()].filter(({ messageId }) => !pulled.has(messageId)).slice(0, most);
      for (const { messageId } of free) pulled.add(messageId);
      return free;
    },
    async ack({ messageId }) {
      letters.delete(messageId);
    },
    async release(given) {
      released = given.length;
      for (const { messageId } of given) pulled.delete(messageId);
    },
    topicOf: async (subscription) => subscription.replace('subscriptions/test', 'topics/source'),
  };
}
