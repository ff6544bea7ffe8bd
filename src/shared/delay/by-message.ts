import { textOf } from '../errors.ts';
import { type Message, type OutgoingMessage, sequenceRefOf } from '../message.ts';
import { shardOf } from '../names.ts';
import type { Log, PayloadStore, Publisher, Scheduler, Stored, System } from '../ports.ts';
import { settledPut } from '../settled.ts';
import { ack, type Verdict } from '../verdict.ts';
import { armRecord, publishTombstone, taskNamesOf } from './arming.ts';
import { carry, keepMsUntil } from './carrying.ts';
import { type DelayPlan, decideSchedule, instructionKey, queueOf } from './decide.ts';
import { type DelayRecord, ledgerKeyOf, type OwedNumber, tombstoneFor, type Wanted } from './ledger.ts';
import type { DelayLedger } from './store.ts';

export type LedgerParts = {
  readonly ledger: DelayLedger;
  readonly payloads?: PayloadStore | undefined;
  readonly scheduler: Pick<Scheduler, 'schedule' | 'remove'>;
  readonly queues: readonly string[];
  readonly publisher: Publisher;
  readonly system: System;
  readonly log: Log;
  readonly storeTimeoutMs: number;
};

export type Asked = {
  readonly id: string;
  readonly message: Message;
  /** As it is to be published. */
  readonly outgoing: OutgoingMessage;
  readonly key: string;
  readonly delayCount: string;
  readonly target: string;
  readonly plan: Extract<DelayPlan, { kind: 'task' }>;
};

/** Schedules by message (protocol 5.2): the entry first, and then its task. Of two messages of one id the one that was published later counts. */
export async function scheduleByMessage(parts: LedgerParts, asked: Asked): Promise<Verdict> {
  const { system, queues, payloads } = parts;
  const { id, message, outgoing, key, target, plan } = asked;
  const publishTimeMs = message.publishTimeMs ?? system.clock.nowMs();
  const carried = await carry(payloads, outgoing, [id, message.messageId], keepMsUntil(plan.dueAtMs, system.clock.nowMs()));
  const wanted: Wanted = {
    id,
    dueAtMs: plan.dueAtMs,
    target,
    key,
    seqRef: sequenceRefOf(message) ?? null,
    instr: { publishTimeMs, messageId: message.messageId, key: instructionKey(key, plan.instruction, asked.delayCount) },
    queue: queueOf(id, queues),
    shard: shardOf(id),
    recurrence: null,
    carried,
    incarnation: system.randomId(),
    opId: system.randomId(),
  };
  const scheduled = await putSchedule(parts, wanted, undefined);
  if (scheduled.kind === 'superseded' || scheduled.record.state !== 'pending') {
    if (scheduled.kind === 'superseded' && wanted.seqRef)
      await publishOwed(parts, [{ target, key, seqRef: wanted.seqRef, reason: 'superseded' }]);
    return ack('superseded');
  }
  await armScheduled(parts, scheduled);
  return ack('scheduled');
}

type Scheduled =
  | { readonly kind: 'written'; readonly record: DelayRecord; readonly before: DelayRecord | undefined }
  | { readonly kind: 'same' | 'superseded'; readonly record: DelayRecord };

/**
 * Writes the entry, unless it says the same or something later.
 * @param current what is stored, where that is known
 * @throws STORE_UNAVAILABLE, RECORD_UNREADABLE
 */
export async function putSchedule(parts: LedgerParts, wanted: Wanted, current: Stored<DelayRecord> | undefined): Promise<Scheduled> {
  const key = ledgerKeyOf(wanted.id);
  for (let stored = current; ; ) {
    const decision = decideSchedule(stored, wanted);
    if (decision.kind !== 'write') return decision;
    const put = await settledPut({ ...parts, store: parts.ledger }, key, decision.record, stored?.version ?? 'absent', 'forever');
    if (put.kind === 'applied') return { kind: 'written', record: decision.record, before: stored?.record };
    stored = put.current;
  }
}

/**
 * The task of what was scheduled, and then an end of what it replaced.
 * @throws SERVICE_UNAVAILABLE
 */
export async function armScheduled(parts: LedgerParts, scheduled: Scheduled): Promise<void> {
  await armRecord(parts.scheduler, scheduled.record);
  if (scheduled.kind === 'written' && scheduled.before) await afterwards(parts, scheduled.record, scheduled.before);
}

/**
 * What a newer generation leaves behind, once it has its task: the older task, the older body, and numbers that their streams still wait
 * for. Nothing depends on it: an older task finds the newer generation, and the release publishes what is owed.
 */
export async function afterwards(parts: LedgerParts, record: DelayRecord, before: DelayRecord): Promise<void> {
  const { scheduler, payloads, log } = parts;
  try {
    await publishOwed(parts, record.owed.slice(before.owed.length));
    if (before.state === 'pending') await Promise.all(taskNamesOf(before).map((name) => scheduler.remove(name)));
    if (before.payload && before.payload.id !== record.payload?.id) await payloads?.remove(before.payload);
  } catch (error) {
    log.warn({ delayId: record.id, reason: textOf(error) }, 'an older generation was not cleared away; its task will find the newer one');
  }
}

/**
 * Tombstones for numbers whose messages are not to come any more (protocol 0.12).
 * @throws SERVICE_UNAVAILABLE
 */
export async function publishOwed(parts: Pick<LedgerParts, 'publisher' | 'log'>, owed: readonly OwedNumber[]): Promise<void> {
  for (const number of owed) await publishTombstone(parts, number.target, tombstoneFor(number));
}
