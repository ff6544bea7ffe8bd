import { malformed, ToolkitError } from '../errors.ts';
import { attribute, type OutgoingMessage, type SequenceRef } from '../message.ts';
import { hash, shardOf } from '../names.ts';
import type { PayloadRef, Recurrence, Revised, Stored } from '../ports.ts';
import type { Carried } from './task-body.ts';

/** How long an entry that has ended is kept: longer than any of its tasks lives. */
export const endedKeepMs = 40 * 86_400_000;

/** What scheduled an entry; of two the later one counts, by the service's clock. */
export type Instruction = {
  readonly publishTimeMs: number;
  /** Empty where a call scheduled it. */
  readonly messageId: string;
  /** The same for every copy of one instruction. */
  readonly key: string;
};

/** A number whose message was replaced or cancelled, and which its stream still waits for. */
export type OwedNumber = { readonly target: string; readonly key: string; readonly seqRef: SequenceRef; readonly reason: string };

/**
 * An entry of the ledger (**wire**): what is delayed under an id. `pending` becomes `releasing` before anything is published, and never
 * again `pending` in the same generation: so a cancel that was answered holds.
 */
export type DelayRecord = Revised & {
  readonly v: 1;
  readonly id: string;
  readonly state: 'pending' | 'releasing' | 'fired' | 'cancelled';
  /** +1 with each new due time; a task fires for its own alone. */
  readonly generation: number;
  /** Random, of the entry: an entry that was deleted and made anew is another one. */
  readonly incarnation: string;
  readonly dueAtMs: number;
  /** From where the hops to the due time are counted. */
  readonly armedAtMs: number;
  readonly target: string;
  /** Of the message; an occurrence of a recurrence adds its due time. */
  readonly key: string;
  /** One of the two until the end. */
  readonly message: OutgoingMessage | null;
  readonly payload: PayloadRef | null;
  readonly seqRef: SequenceRef | null;
  readonly instr: Instruction;
  /** Keys of earlier instructions, sixteen at most. */
  readonly seen: readonly string[];
  readonly opId: string;
  readonly leaseMs: number;
  /** Full name of the queue that holds the task. */
  readonly queue: string;
  readonly shard: number;
  readonly recurrence: Recurrence | null;
  readonly owed: readonly OwedNumber[];
  /** Of what was published last. */
  readonly messageId: string | null;
};

const seenKeys = 16;
const mostIdBytes = 1_024;

/**
 * The document id of an entry (**wire**).
 * @throws MALFORMED_MESSAGE for an id that is empty, no well-formed text, or too long
 */
export function ledgerKeyOf(id: string): string {
  if (typeof id !== 'string' || id.trim() === '' || !id.isWellFormed()) throw malformed('the delay id is empty or no well-formed text');
  const bytes = Buffer.byteLength(id);
  if (bytes > mostIdBytes) throw malformed(`the delay id takes ${bytes} bytes; at most ${mostIdBytes} are allowed`);
  return hash(id);
}

/** @throws RECORD_UNREADABLE */
export function readable(stored: Stored<DelayRecord>): DelayRecord {
  const { record } = stored;
  if (record.v === 1 && Number.isSafeInteger(record.generation) && typeof record.state === 'string') return record;
  throw new ToolkitError('RECORD_UNREADABLE', `the ledger entry of format ${String(record.v)} cannot be read; this version reads format 1`);
}

/** What is to be delayed under an id, and what is made for it once. */
export type Wanted = Pick<DelayRecord, 'id' | 'dueAtMs' | 'target' | 'key' | 'seqRef' | 'instr' | 'queue' | 'shard' | 'recurrence'> & {
  readonly carried: Carried;
  readonly incarnation: string;
  readonly opId: string;
};

const carriedFields = (carried: Carried): Pick<DelayRecord, 'message' | 'payload'> =>
  'payload' in carried ? { message: null, payload: carried.payload } : { message: carried.message, payload: null };

export function carriedBy({ message, payload }: DelayRecord): Carried {
  if (payload) return { payload };
  if (message) return { message };
  throw new ToolkitError('RECORD_UNREADABLE', 'the ledger entry holds no message');
}

export const created = ({ carried, ...wanted }: Wanted): DelayRecord => ({
  ...wanted,
  ...carriedFields(carried),
  v: 1,
  rev: 1,
  state: 'pending',
  generation: 1,
  armedAtMs: wanted.instr.publishTimeMs,
  seen: [],
  runId: '',
  leaseMs: 0,
  owed: [],
  messageId: null,
});

/** A cancel that came before what it cancels. */
export const neverScheduled = (id: string, nowMs: number, opId: string, incarnation: string): DelayRecord => ({
  ...{ id, incarnation, opId, v: 1, rev: 1, state: 'cancelled', generation: 1, dueAtMs: nowMs, armedAtMs: nowMs, target: '', key: '' },
  ...{ message: null, payload: null, seqRef: null, recurrence: null, messageId: null },
  instr: { publishTimeMs: nowMs, messageId: '', key: opId },
  ...{ seen: [], owed: [], runId: '', leaseMs: 0, queue: '', shard: shardOf(id) },
});

/** The record with a newer instruction in place of its own. */
export function replaced(record: DelayRecord, wanted: Wanted): DelayRecord {
  const { incarnation: _, ...fresh } = created(wanted);
  return {
    ...record,
    ...fresh,
    rev: record.rev + 1,
    generation: record.generation + 1,
    seen: seenBy(record),
    owed: owedBy(record, 'replaced'),
    messageId: record.messageId,
  };
}

const seenBy = ({ seen, instr }: DelayRecord): readonly string[] =>
  [...seen.filter((key) => key !== instr.key), instr.key].slice(-seenKeys);

/** A message that is not to come any more leaves its number behind. */
function owedBy({ owed, state, seqRef, target, key }: DelayRecord, reason: string): readonly OwedNumber[] {
  return seqRef && (state === 'pending' || state === 'releasing') ? [...owed, { target, key, seqRef, reason }] : owed;
}

/** The call came last: what was published before it and is processed later counts no more. */
const calledAt = (record: DelayRecord, nowMs: number): Pick<DelayRecord, 'instr' | 'seen'> => ({
  instr: { ...record.instr, publishTimeMs: Math.max(nowMs, record.instr.publishTimeMs) },
  seen: seenBy(record),
});

export const rescheduled = (record: DelayRecord, dueAtMs: number, nowMs: number, opId: string): DelayRecord => ({
  ...record,
  ...calledAt(record, nowMs),
  rev: record.rev + 1,
  generation: record.generation + 1,
  dueAtMs,
  armedAtMs: nowMs,
  opId,
});

export const cancelled = (record: DelayRecord, nowMs: number, opId: string): DelayRecord => ({
  ...record,
  ...calledAt(record, nowMs),
  rev: record.rev + 1,
  state: 'cancelled',
  message: null,
  payload: null,
  owed: owedBy(record, 'cancelled'),
  opId,
});

export const claimed = (record: DelayRecord, runId: string, leaseMs: number): DelayRecord => ({
  ...record,
  rev: record.rev + 1,
  state: 'releasing',
  runId,
  opId: '',
  leaseMs,
});

/** Given back by its run: the next dispatch may take it at once, and a cancel comes too late all the same. */
export const freed = (record: DelayRecord): DelayRecord => ({
  ...record,
  rev: record.rev + 1,
  runId: '',
  opId: record.runId,
  leaseMs: 0,
});

export const fired = (record: DelayRecord, messageId: string): DelayRecord => ({
  ...freed(record),
  state: 'fired',
  message: null,
  payload: null,
  owed: [],
  messageId,
});

/** A recurrence goes on: its next occurrence waits. */
export const recurring = (record: DelayRecord, messageId: string, dueAtMs: number): DelayRecord => ({
  ...freed(record),
  state: 'pending',
  generation: record.generation + 1,
  armedAtMs: record.dueAtMs,
  dueAtMs,
  owed: [],
  messageId,
});

/** A task of its own again, under a name that was never used; what was begun stays begun. */
export const rearmed = (record: DelayRecord, queue: string, nowMs: number, opId: string): DelayRecord => ({
  ...record,
  rev: record.rev + 1,
  generation: record.generation + 1,
  armedAtMs: nowMs,
  queue,
  runId: '',
  opId,
  leaseMs: 0,
});

/** What takes the place of an owed number in its stream. */
export const tombstoneFor = ({ key, seqRef, reason }: OwedNumber): OutgoingMessage => ({
  data: new Uint8Array(),
  attributes: {
    [attribute.key]: key,
    [attribute.stream]: seqRef.stream,
    [attribute.epoch]: String(seqRef.epoch),
    [attribute.sequence]: String(seqRef.sequence),
    [attribute.tombstone]: reason,
  },
});
