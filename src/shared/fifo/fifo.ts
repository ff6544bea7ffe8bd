import { textOf } from '../errors.ts';
import { holdLease, type Lease } from '../lease.ts';
import { attribute, type Message, type SequenceRef, sequenceRefOf } from '../message.ts';
import { documentId, encodeName } from '../names.ts';
import { type Options, readOptions } from '../options.ts';
import type { Context, DeadLetters, Handler, Log, RecordStore, Stored, System, VerdictHandler } from '../ports.ts';
import { settledGet, settledPut } from '../settled.ts';
import { ack, deadLetter, nack, neverThrowing, type Verdict, verdictOf, verdictOfError } from '../verdict.ts';
import { advanced, type Cursor, decideSequence, type FifoDecision, released } from './decide.ts';
import { fifoOptions } from './options.ts';
import { createWaitingRoom } from './waiting-room.ts';

export type FifoParts = {
  readonly consumer: string;
  readonly store: RecordStore<Cursor>;
  readonly system: System;
  readonly log: Log;
  /** Where a message of a stream goes that can never be handled; its number then counts as done. */
  readonly deadLetters: DeadLetters;
  readonly options?: Partial<Options<typeof fifoOptions>>;
};

/**
 * Runs a handler in order of number, one at a time per stream over all processes: the cursor moves by compare-and-set, and
 * only after the handler is done (protocol 4). A message without a stream goes straight through.
 * @throws INVALID_SETTINGS here, and never while messages are handled
 */
export function createFifo(parts: FifoParts): (handle: Handler) => VerdictHandler {
  const { store, system, log, deadLetters } = parts;
  const { leaseMs, holdMs, storeTimeoutMs } = readOptions(fifoOptions, parts.options);
  const storeParts = { store, system, storeTimeoutMs };
  const scope = encodeName(parts.consumer, 'the consumer');
  const waitingRoom = createWaitingRoom(system.clock);

  const take = async (documentId: string, ref: SequenceRef) => {
    const runId = system.randomId();
    let current: Stored<Cursor> | undefined = await settledGet(storeParts, documentId);
    for (;;) {
      const decision = decideSequence(current, ref, { runId, leaseMs });
      if (decision.kind !== 'process') return decision;
      const put = await settledPut(storeParts, documentId, decision.write, current?.version ?? 'absent', 'forever');
      if (put.kind === 'applied') {
        const claimed = { ...put, key: documentId, record: decision.write, keepMs: 'forever' } as const;
        return { kind: 'holding', lease: holdLease<Cursor>(storeParts, log, claimed) } as const;
      }
      current = put.current;
    }
  };

  const run = async (handle: Handler, message: Message, context: Context): Promise<Verdict> => {
    if (message.attributes[attribute.tombstone] !== undefined) return ack('tombstone');
    try {
      return verdictOf(await handle(message, context));
    } catch (error) {
      log.warn({ messageId: message.messageId, reason: textOf(error) }, 'handler failed');
      return verdictOfError(error);
    }
  };

  const finish = async (lease: Lease<Cursor>, message: Message, verdict: Verdict): Promise<Verdict> => {
    if (verdict.kind === 'deadLetter') {
      try {
        await deadLetters.publish(message, verdict);
      } catch (error) {
        log.error({ messageId: message.messageId, reason: textOf(error) }, 'dead letter not published');
        return finish(lease, message, nack('failed'));
      }
    }
    if (verdict.kind === 'nack') {
      await lease
        .end(released, 'forever')
        .catch((error: unknown) => log.warn({ reason: textOf(error) }, 'stream not freed; its lease will end'));
      return verdict;
    }
    if ((await lease.end(advanced, 'forever')) === 'lost') return nack('leaseLost');
    return verdict.kind === 'deadLetter' ? ack('skipped') : verdict;
  };

  /** The stream, or why not: what is early or busy waits in this process first, up to `holdMs`, and looks again. */
  const takeInTurn = async (id: string, ref: SequenceRef) => {
    const untilMs = system.clock.monotonicMs() + holdMs;
    for (;;) {
      const seat = waitingRoom.sit(id, ref.sequence);
      const taken = await take(id, ref).catch((error: unknown) => {
        seat.leave();
        throw error;
      });
      const leftMs = untilMs - system.clock.monotonicMs();
      const waits = (taken.kind === 'early' || taken.kind === 'busy') && leftMs > 0;
      if (!waits) seat.leave();
      if (!waits || !(await seat.turn(leftMs))) return taken;
    }
  };

  const deliver = async (handle: Handler, message: Message, context: Context): Promise<Verdict> => {
    const ref = sequenceRefOf(message);
    if (!ref) return run(handle, message, context);
    const id = documentId(scope, encodeName(ref.stream, attribute.stream));
    const taken = await takeInTurn(id, ref);
    if (taken.kind !== 'holding') return verdictWithoutRun(taken, ref);
    const { lease } = taken;
    const signal = AbortSignal.any([context.signal, lease.signal()]);
    const verdict = await run(handle, message, { ...context, signal, fence: lease.fence });
    const finished = await finish(lease, message, verdict);
    waitingRoom.moved(id, finished.kind === 'ack' ? ref.sequence : ref.sequence - 1);
    return finished;
  };

  return (handle) => neverThrowing(log, (message, context) => deliver(handle, message, context));
}

function verdictWithoutRun(decision: Exclude<FifoDecision, { kind: 'process' }>, ref: SequenceRef): Verdict {
  switch (decision.kind) {
    case 'old':
      return ack('old');
    case 'early':
      return nack('early');
    case 'busy':
      return nack('inProgress', decision.retryAfterMs);
    case 'newEpoch':
      return nack('blocked');
    case 'oldEpoch':
      return deadLetter('oldEpoch', `number ${ref.sequence} is of epoch ${ref.epoch}, which is over`);
  }
}
