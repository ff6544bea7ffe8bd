import type { Journal } from '../journal.ts';
import { msOf, type PubsubMessage } from './messages.ts';
import { readyQueue } from './ready-queue.ts';

/** Messages kept for a replay, by a topic or a snapshot. */
export type MessageLog = {
  add(message: PubsubMessage): void;
  /** Forgets what was published until then, at that instant too. */
  dropUntil(atMs: number): void;
  all(): readonly PubsubMessage[];
};

/** Reads back what the journal holds for its owner. */
export function createMessageLog(journal: Journal, owner: string): MessageLog {
  const kind = `pubsub/log of ${owner}`;
  const messages = readyQueue<PubsubMessage>();
  for (const [, message] of journal.load<PubsubMessage>(kind)) messages.push(message);
  return {
    add(message) {
      messages.push(message);
      // Message ids have one length, so that their order as texts is that of publishing.
      journal.put(kind, message.messageId, message);
    },
    dropUntil(atMs) {
      for (let first = messages.peek(); first && msOf(first.publishTime) <= atMs; first = messages.peek()) {
        messages.take();
        journal.delete(kind, first.messageId);
      }
    },
    all: messages.all,
  };
}
