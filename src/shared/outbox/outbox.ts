import type { System } from '../ports.ts';
import { collecting } from './collecting.ts';
import { type OutboxDraft, plain, requireKey, type Wishes } from './drafts.ts';
import type { StreamStore } from './store.ts';

export type OutboxParts<Transaction> = Pick<Wishes, 'keepBodies'> & {
  readonly streams: StreamStore<Transaction>;
  readonly system: System;
};

/** What an inbox handler sends, with a key of the toolkit's making. */
export type Sent = { readonly key: string };

/** Messages that are published if a transaction of yours commits, and only then; the relay does it. */
export type Outbox<Transaction> = {
  /**
   * Each message needs a key of its own. With a `stream`: in the order in which they were added to it; it is looked up in the transaction,
   * so before your writes and in one call. A key is then taken once. Without: in no order, and a key that is added again is published
   * again.
   * @throws MALFORMED_MESSAGE, MESSAGE_TOO_LARGE, RECORD_UNREADABLE, and what the transaction throws
   */
  add(transaction: Transaction, drafts: OutboxDraft | readonly OutboxDraft[]): Promise<void>;
  /**
   * Collects what one run of a transaction sends, to be written at its end; before that nothing is written.
   * @param sender of two senders each has its own message under a key
   */
  within(transaction: Transaction, sender: string): { send(draft: OutboxDraft): Promise<Sent>; write(): Promise<void> };
};

/** A transactional outbox over the same counters and entries as the sequencer, without numbers on the wire. */
export function createOutbox<Transaction>(parts: OutboxParts<Transaction>): Outbox<Transaction> {
  const { system } = parts;
  return {
    async add(transaction, drafts) {
      const group = ('topic' in drafts ? [drafts] : drafts).map((draft) => {
        requireKey(draft);
        return plain(draft, system, parts);
      });
      const collection = collecting(parts, transaction, '');
      await collection.add(group);
      await collection.write();
    },
    within(transaction, sender) {
      const collection = collecting(parts, transaction, sender);
      return {
        async send(draft) {
          const unnumbered = plain(draft, system, parts);
          await collection.add([unnumbered]);
          return { key: unnumbered.key };
        },
        async write() {
          await collection.write();
        },
      };
    },
  };
}
