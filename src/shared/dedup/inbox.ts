import type { Message } from '../message.ts';
import { type Options, readOptions } from '../options.ts';
import type { Context, Handler, Log, Stored, VerdictHandler } from '../ports.ts';
import { ack, nack, neverThrowing, type Verdict, verdictOf } from '../verdict.ts';
import { jittered, pause } from '../waiting.ts';
import { type Claimant, createClaims } from './claim.ts';
import { type Claim, conflictVerdict, type DedupRecord, decideInbox, type InboxDecision } from './decide.ts';
import { dedupOptions } from './options.ts';

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

export type InboxParts<Transaction> = Claimant & {
  readonly store: InboxStore<Transaction>;
  readonly log: Log;
  readonly options?: Partial<Options<typeof dedupOptions>>;
};

export type InboxContext<Transaction> = Context & {
  /** Reads come before writes; the commit is the toolkit's. */
  readonly transaction: Transaction;
};

const contentionTries = 8;
/** The client's own back-off makes two copies of one message take seconds. */
const contentionPauseMs = 200;

/**
 * Runs a handler whose writes and whose record of being done commit together (protocol 2): the effect is there once, whenever
 * a process dies. Two copies at the same time may both run the handler; one of them commits.
 */
export function createInbox<Transaction>(parts: InboxParts<Transaction>): (handle: Handler<InboxContext<Transaction>>) => VerdictHandler {
  const { store, system, log } = parts;
  const options = readOptions(dedupOptions, parts.options);
  const claimOf = createClaims(parts, options);

  const deliver = async (handle: Handler<InboxContext<Transaction>>, message: Message, context: Context): Promise<Verdict> => {
    const { documentId, claim } = claimOf(message);
    let verdict: Verdict = nack('failed');
    const work = async (marker: Stored<DedupRecord> | undefined, transaction: Transaction) => {
      const decision = decideInbox(marker, claim);
      if (decision.kind !== 'run') {
        verdict = settled(decision, claim);
        return undefined;
      }
      verdict = verdictOf(await handle(message, { ...context, idempotencyKey: claim.key, fence: decision.write.rev, transaction }));
      return verdict.kind === 'ack' ? decision.write : undefined;
    };
    for (let tries = 1; tries <= contentionTries; tries++) {
      try {
        if ((await store.transact(documentId, work, claim.ttlMs)) !== 'contended') return verdict;
      } catch (error) {
        const decision = decideInbox(await store.get(documentId), claim);
        if (decision.kind !== 'run') return settled(decision, claim);
        throw error;
      }
      await pause(system.clock, jittered(system, contentionPauseMs));
    }
    return nack('inProgress');
  };

  return (handle) => neverThrowing(log, (message, context) => deliver(handle, message, context));
}

function settled(decision: Exclude<InboxDecision, { kind: 'run' }>, claim: Claim): Verdict {
  if (decision.kind === 'committed') return ack('processed');
  if (decision.kind === 'duplicate') return ack('duplicate');
  return conflictVerdict(claim);
}
