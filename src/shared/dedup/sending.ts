import { ToolkitError } from '../errors.ts';
import { checkedKey } from '../message.ts';
import type { OutboxDraft } from '../outbox/drafts.ts';
import type { Outbox, Sent } from '../outbox/outbox.ts';

type Sending = {
  send(draft: Omit<OutboxDraft, 'key'>): Promise<Sent>;
  /** To be called once the handler is done: before that nothing is written. */
  write(): Promise<void>;
};

/** What one run of a handler sends in its transaction, under keys made of the incoming message's (protocol 0.13, I4). */
export function sendingOf<Transaction>(
  { outbox, consumer }: { readonly outbox?: Outbox<Transaction>; readonly consumer: string },
  transaction: Transaction,
  key: string,
): Sending {
  const outgoing = outbox?.within(transaction, consumer);
  let sent = 0;
  return {
    async send(draft) {
      if (!outgoing) throw new ToolkitError('INVALID_SETTINGS', 'a handler that sends needs an inbox with an outbox');
      return outgoing.send({ ...draft, key: checkedKey(`${key}>${sent++}`, 'the key of a sent message') });
    },
    write: async () => outgoing?.write(),
  };
}
