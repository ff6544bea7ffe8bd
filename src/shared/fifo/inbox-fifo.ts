import { claimedBy, createClaims, type Reading, unreadableRecord } from '../dedup/claim.ts';
import { decideInbox } from '../dedup/decide.ts';
import { createInbox, type InboxContext, type InboxStore } from '../dedup/inbox.ts';
import { dedupOptions } from '../dedup/options.ts';
import { type OutcomeParts, verdictOfOutcome } from '../dedup/outcomes.ts';
import { sendingOf } from '../dedup/sending.ts';
import { telemetry } from '../metrics.ts';
import { type Options, readOptions } from '../options.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { Handler } from '../ports.ts';
import { verdictOf } from '../verdict.ts';
import { type FifoHandler, type FifoParts, fifoWith } from './fifo.ts';
import { createInboxRun } from './inbox-run.ts';
import type { FifoTransactions, Step } from './transactions.ts';

export type InboxFifoParts<Transaction> = FifoParts &
  Reading & {
    readonly transactions: FifoTransactions<Transaction>;
    /** For a message without a stream. */
    readonly inbox: InboxStore<Transaction>;
    /** Only for handlers that send. */
    readonly outbox?: Outbox<Transaction>;
    readonly dedup?: Partial<Options<typeof dedupOptions>>;
  };

/**
 * In order and once: what a handler writes, its message's record and the stream's position are one commit, for up to `commitEvery` numbers that follow
 * each other. A process that dies at any instant leaves all of it or nothing, so the effect of each number is there exactly once; the handler's code
 * may run more than once. It reads before it writes, as in `createInbox`; a message without a stream goes through that.
 * @throws INVALID_SETTINGS
 */
export function createInboxFifo<Transaction>(
  parts: InboxFifoParts<Transaction>,
): (handle: Handler<InboxContext<Transaction>>) => FifoHandler {
  const { consumer, system, log, outbox } = parts;
  const { maxResultBytes, ...options } = readOptions(dedupOptions, parts.dedup);
  const claimOf = createClaims(parts, options);
  const outcomeParts: OutcomeParts = { consumer, telemetry: telemetry(consumer, log, parts.meter), maxResultBytes };
  const withRun = fifoWith(parts);
  const alone = createInbox({ ...parts, store: parts.inbox, options: parts.dedup ?? {} });

  const once = (handle: Handler<InboxContext<Transaction>>, step: Step<Transaction>): Handler => {
    return async (message, context) => {
      const { documentId, keyHash, claim } = claimOf(claimedBy(message, parts), context.round);
      const decision = decideInbox(await step.marker(documentId), claim);
      if (decision.kind === 'unreadable') throw unreadableRecord(documentId, decision.found);
      // Of this very run it cannot be: that would have moved the cursor too.
      if (decision.kind === 'committed') throw new Error(`the record ${documentId} is of this run, and the cursor is not`);
      if (decision.kind !== 'run') return verdictOfOutcome(outcomeParts, decision, { documentId, keyHash, claim, message, context });
      const { send, write } = sendingOf({ consumer, ...(outbox && { outbox }) }, step.transaction, claim.key);
      const own = { ...context, idempotencyKey: claim.key, transaction: step.transaction, send };
      const verdict = verdictOf(await handle(message, own));
      if (verdict.kind !== 'ack') return verdict;
      await write();
      step.mark(documentId, decision.write, claim.ttlMs);
      return verdict;
    };
  };

  return (handle) =>
    withRun((shared) => {
      const { transactions } = parts;
      return createInboxRun<Transaction>({ ...shared, system, transactions, once: (step) => once(handle, step) });
    }, alone(handle));
}
