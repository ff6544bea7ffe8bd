import { telemetry } from '../metrics.ts';
import { type Options, readOptions } from '../options.ts';
import type { OutboxDraft } from '../outbox/drafts.ts';
import type { Outbox, Sent } from '../outbox/outbox.ts';
import type { Context, Handler, Log, Meter, Stored, VerdictHandler } from '../ports.ts';
import { ack, nack, neverThrowing, type Verdict, verdictOf } from '../verdict.ts';
import { jittered, pause } from '../waiting.ts';
import { type Claimant, claimedBy, createClaims, type Reading, unreadableRecord } from './claim.ts';
import { type DedupRecord, decideInbox, type InboxDecision } from './decide.ts';
import { createJoining } from './joining.ts';
import { dedupOptions } from './options.ts';
import { type Delivery, keptResult, type OutcomeParts, type Replay, verdictOfOutcome } from './outcomes.ts';
import { sendingOf } from './sending.ts';

/** Records and the user's own documents in one transaction. */
export interface InboxStore<Transaction> {
  /**
   * One try of one transaction: reads the marker, runs the work, writes the marker that it returns (last) and commits. Where
   * the work returns nothing, nothing is written.
   * @returns `contended` when another transaction won, be it at the commit or at a read of the work: nothing was written
   * @throws STORE_UNAVAILABLE, and then the commit may have been applied; or the error of the work or of a write that it made
   */
  transact(
    key: string,
    work: (marker: Stored<DedupRecord> | undefined, transaction: Transaction) => Promise<DedupRecord | undefined>,
    keepMs: number,
  ): Promise<'committed' | 'nothing' | 'contended'>;
  get(key: string): Promise<Stored<DedupRecord> | undefined>;
}

export type InboxParts<Transaction> = Omit<Claimant, 'effects'> &
  Reading & {
    readonly store: InboxStore<Transaction>;
    /** Only for handlers that send. */
    readonly outbox?: Outbox<Transaction>;
    readonly log: Log;
    readonly meter?: Meter;
    /** Results are kept only with it. */
    readonly replay?: Replay;
    readonly options?: Partial<Options<typeof dedupOptions>>;
  };

export type InboxContext<Transaction> = Context & {
  /** Reads come before writes; the commit is the toolkit's. */
  readonly transaction: Transaction;
  /**
   * Publishes if this run commits, and only then. The key is made of the incoming message's and of how many were sent before, so that
   * every run gives the same ones. With a stream it reads, so it comes before your writes.
   * @throws MALFORMED_MESSAGE, MESSAGE_TOO_LARGE; INVALID_SETTINGS where the inbox has no outbox
   */
  send(draft: Omit<OutboxDraft, 'key'>): Promise<Sent>;
};

export const contentionTries = 8;
/** The client's own back-off makes two copies of one message take seconds. */
export const contentionPauseMs = 200;
const contendedRetryMs = 1_000;

/**
 * Runs a handler whose writes and whose record of being done commit together (protocol 2): the effect is there once, whenever
 * a process dies. Two copies at the same time may both run the handler; one of them commits.
 */
export function createInbox<Transaction>(parts: InboxParts<Transaction>): (handle: Handler<InboxContext<Transaction>>) => VerdictHandler {
  const { store, system, log, consumer, replay } = parts;
  const { maxResultBytes, ...options } = readOptions(dedupOptions, parts.options);
  const watched = telemetry(consumer, log, parts.meter);
  const outcomeParts: OutcomeParts = { consumer, telemetry: watched, maxResultBytes, replay };
  const claimOf = createClaims(parts, options);

  const settled = async (decision: Exclude<InboxDecision, { kind: 'run' }>, delivery: Delivery): Promise<Verdict> => {
    if (decision.kind === 'committed') return ack('processed');
    if (decision.kind === 'unreadable') throw unreadableRecord(delivery.documentId, decision.found);
    return verdictOfOutcome(outcomeParts, decision, delivery);
  };

  const deliver = async (handle: Handler<InboxContext<Transaction>>, delivery: Delivery): Promise<Verdict> => {
    const { documentId, claim, message, context } = delivery;
    const found = { verdict: nack('failed') as Verdict, decision: undefined as Exclude<InboxDecision, { kind: 'run' }> | undefined };
    const work = async (marker: Stored<DedupRecord> | undefined, transaction: Transaction) => {
      const decision = decideInbox(marker, claim);
      if (decision.kind !== 'run') {
        found.decision = decision;
        return undefined;
      }
      const { send, write } = sendingOf(parts, transaction, claim.key);
      const returned = await handle(message, { ...context, idempotencyKey: claim.key, fence: decision.write.rev, transaction, send });
      found.verdict = verdictOf(returned);
      if (found.verdict.kind !== 'ack') return undefined;
      await write();
      return { ...decision.write, result: replay && returned !== found.verdict ? keptResult(outcomeParts, returned, claim) : null };
    };
    for (let tries = 1; tries <= contentionTries; tries++) {
      try {
        const committed = await store.transact(documentId, work, claim.ttlMs);
        if (found.decision) return settled(found.decision, delivery);
        if (committed !== 'contended') {
          if (found.verdict.kind === 'ack') watched.count('ptk.dedup.handled', { outcome: 'processed' });
          return found.verdict;
        }
      } catch (error) {
        const decision = decideInbox(await store.get(documentId), claim);
        if (decision.kind !== 'run') return settled(decision, delivery);
        watched.count('ptk.dedup.handled', { outcome: 'failed' });
        throw error;
      }
      await pause(system.clock, jittered(system, contentionPauseMs));
    }
    watched.count('ptk.dedup.in_progress');
    return nack('inProgress', contendedRetryMs);
  };

  return (handle) => {
    const joining = createJoining(outcomeParts, (delivery) => deliver(handle, delivery));
    return neverThrowing(log, (message, context) => joining({ message, context, ...claimOf(claimedBy(message, parts), context.round) }));
  };
}
