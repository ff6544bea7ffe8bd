import { ToolkitError, textOf } from '../errors.ts';
import { attribute, checkedKey, type OutgoingMessage } from '../message.ts';
import type { Calendar, Log, PayloadStore, Publisher, Scheduler, Stored, System } from '../ports.ts';
import { settledGet, settledPut } from '../settled.ts';
import { type DeadLetterReason, verdictOfError } from '../verdict.ts';
import { armNextHop, armRecord, released } from './arming.ts';
import { publishOwed } from './by-message.ts';
import { keepLonger, keepMsUntil, uncarried } from './carrying.ts';
import { decideRelease } from './decide.ts';
import { carriedBy, type DelayRecord, endedKeepMs, fired, freed, ledgerKeyOf, recurring } from './ledger.ts';
import type { DelayLedger } from './store.ts';
import type { LedgerRef, TaskBody } from './task-body.ts';

type RecordParts = {
  readonly ledger: DelayLedger;
  readonly payloads: PayloadStore;
  readonly calendar: Calendar;
  readonly scheduler: Scheduler;
  readonly publisher: Publisher;
  readonly system: System;
  readonly log: Log;
  readonly leaseMs: number;
  readonly storeTimeoutMs: number;
  readonly published: (dueAtMs: number) => void;
  /** Stores a message that can never be published; @throws what is no such error, as it came. */
  readonly deadLettered: (error: unknown) => Promise<Released>;
  /** The same, and its number goes to its stream. */
  readonly ended: (error: unknown) => Promise<Released>;
};

export type Released =
  | { readonly kind: 'published'; readonly messageId: string }
  | { readonly kind: 'hop'; readonly hop: number }
  /** Nothing to publish: cancelled, published before, or another generation. */
  | { readonly kind: 'ended' }
  | { readonly kind: 'deadLettered'; readonly reason: DeadLetterReason }
  /** Another dispatch is at it. */
  | { readonly kind: 'busy' };

/** A claim that is refused was taken by another dispatch, cancelled, or replaced; each costs a decision on what is stored then. */
export async function releaseRecord(parts: RecordParts, body: TaskBody, ref: LedgerRef): Promise<Released> {
  const { ledger, scheduler, system, leaseMs } = parts;
  const storeParts = { ...parts, store: ledger };
  const key = ledgerKeyOf(ref.id);
  const task = { ...ref, hasMoreHops: body.scheduledForMs < body.dueAtMs, runId: system.randomId(), leaseMs };
  let current: Stored<DelayRecord> | undefined = await settledGet(storeParts, key);
  for (;;) {
    const decision = decideRelease(current, task);
    switch (decision.kind) {
      case 'missing':
        return parts.ended(new ToolkitError('LEDGER_MISSING', `the ledger has no entry for the task of generation ${ref.generation}`));
      case 'busy':
        return { kind: 'busy' };
      case 'ended':
        // Whoever cancelled it may have died before its number was given back.
        await publishOwed(parts, decision.record.owed);
        return { kind: 'ended' };
      case 'rearm':
        await armRecord(scheduler, decision.record);
        return { kind: 'ended' };
      case 'hop': {
        const hop = await armNextHop(scheduler, [decision.record.queue], body);
        return { kind: 'hop', hop };
      }
      case 'claim': {
        const put = await settledPut(storeParts, key, decision.record, current?.version ?? 'absent', 'forever');
        if (put.kind === 'applied') {
          const end = await publishClaimed(parts, { record: decision.record, version: put.version, nowMs: current?.nowMs ?? 0 });
          if (end.kind !== 'lost') return end;
          current = end.current;
        } else {
          current = put.current;
        }
      }
    }
  }
}

type Claimed = { readonly record: DelayRecord; readonly version: string; readonly nowMs: number };

/** R2 and R3 (protocol 5.4): publishes, and writes that it has. */
async function publishClaimed(
  parts: RecordParts,
  { record, version, nowMs }: Claimed,
): Promise<Released | { readonly kind: 'lost'; readonly current: Stored<DelayRecord> | undefined }> {
  const { publisher, payloads, ledger } = parts;
  const storeParts = { ...parts, store: ledger };
  const key = ledgerKeyOf(record.id);
  let nextDueAtMs: number | undefined;
  let messageId = '';
  let end: Released;
  try {
    await publishOwed(parts, record.owed);
    const message = await uncarried(payloads, carriedBy(record));
    // Before the publish, after which nothing but the record may fail.
    const next = nextOccurrence(parts, record, nowMs);
    if (record.payload && next !== undefined) await keepLonger(payloads, record.payload, keepMsUntil(next, nowMs));
    nextDueAtMs = next;
    [messageId = ''] = await publisher.publish(record.target, [occurrence(record, message)]);
    parts.published(record.dueAtMs);
    end = { kind: 'published', messageId };
  } catch (error) {
    try {
      if (record.seqRef && verdictOfError(error).kind === 'deadLetter')
        await publishOwed(parts, [{ ...record, seqRef: record.seqRef, reason: 'deadLetter' }]);
      end = await parts.deadLettered(error);
    } catch (failure) {
      await giveBack(parts, record, version);
      throw failure;
    }
  }
  const next = nextDueAtMs === undefined ? undefined : recurring(record, messageId, nextDueAtMs);
  const put = await settledPut(storeParts, key, next ?? fired(record, messageId), version, next ? 'forever' : endedKeepMs);
  if (put.kind === 'lost') return put;
  if (next) await armRecord(parts.scheduler, next);
  if (record.payload && record.payload.id !== next?.payload?.id)
    await payloads.remove(record.payload).catch((error: unknown) => parts.log.warn({ reason: textOf(error) }, 'payload not removed'));
  return end;
}

/** So that the next dispatch need not wait for the end of the lease; where that fails too, it does. */
async function giveBack(parts: RecordParts, record: DelayRecord, version: string): Promise<void> {
  const key = ledgerKeyOf(record.id);
  await settledPut({ ...parts, store: parts.ledger }, key, freed(record), version, 'forever').catch((error: unknown) =>
    parts.log.warn({ delayId: record.id, reason: textOf(error) }, 'entry not freed; its lease will end'),
  );
}

/** Each occurrence of a recurrence is a message of its own, the same on every try. */
function occurrence({ recurrence, key, dueAtMs }: DelayRecord, message: OutgoingMessage): OutgoingMessage {
  const outgoing = released(message);
  if (!recurrence) return outgoing;
  return { ...outgoing, attributes: { ...outgoing.attributes, [attribute.key]: occurrenceKey(key, dueAtMs) } };
}

export const occurrenceKey = (key: string, dueAtMs: number): string =>
  checkedKey(`${key}@${new Date(dueAtMs).toISOString()}`, 'the key of an occurrence');

/** When it comes next, after this time and after now: occurrences that were missed are not made up for. */
function nextOccurrence({ calendar, log }: RecordParts, { recurrence, id, dueAtMs }: DelayRecord, nowMs: number): number | undefined {
  if (!recurrence) return undefined;
  try {
    const next = calendar.next(recurrence, Math.max(dueAtMs, nowMs), dueAtMs);
    if (next === undefined) log.info({ delayId: id }, 'the recurrence has no further occurrence');
    return next;
  } catch (error) {
    log.error({ delayId: id, reason: textOf(error) }, 'the recurrence cannot be read any more');
    return undefined;
  }
}
